#include "server/tuner/space/transform.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "server/tuner/space/block_kind.h"

namespace hone::space {
namespace {

using ir::AtomId;
using ir::Index;
using ir::NodeId;
using schedule::Operand;
using Short = Transform::Short;

// Returns the iteration variable of a block that an index equals, or its position within pieces.
std::optional<Short> ShortAxisOf(const ir::Program& program, const ir::Block& block,
                                 const Index& index) {
  AtomId atom = index.SingleAtom();
  if (atom == ir::kNoAtom) return std::nullopt;
  Short axis;
  if (program.atoms[atom].kind == ir::Atom::Kind::kMod) {
    axis.divisor = program.atoms[atom].divisor;
    atom = program.atoms[atom].argument.SingleAtom();
  }
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].var != atom || block.iters[i].reduce) continue;
    axis.iter = static_cast<int>(i);
    return axis;
  }
  return std::nullopt;
}

// Returns the axis by which a value chooses: select(axis == 0, …, select(axis == 1, …)). nullopt if
// there is none, or several.
std::optional<Short> ChosenAxis(const ir::Program& program, const ir::Block& block) {
  std::optional<Short> chosen;
  bool one = true;
  program.pool.Visit(block.values[0], [&](const ir::Expr& expr) {
    if (expr.op != ir::Op::kSelect) return;
    const ir::Expr& condition = program.pool[expr.a];
    if (condition.op != ir::Op::kEqual || program.pool[condition.a].op != ir::Op::kIndex ||
        program.pool[condition.b].op != ir::Op::kConst) {
      one = false;
      return;
    }
    const std::optional<Short> axis =
        ShortAxisOf(program, block, program.pool.IndicesOf(program.pool[condition.a])[0]);
    one &= axis.has_value() && (!chosen.has_value() ||
                                (chosen->iter == axis->iter && chosen->divisor == axis->divisor));
    chosen = axis;
  });
  return one ? chosen : std::nullopt;
}

// Whether a block writes one buffer that is not an output, at its own iteration variables in order.
bool WritesWhole(const ir::Program& program, const ir::Block& block) {
  if (block.outputs.size() != 1 || program.buffers[block.outputs[0]].output) return false;
  for (size_t d = 0; d < block.indices.size(); ++d) {
    if (block.indices[d].SingleAtom() != block.iters[d].var || block.iters[d].reduce) return false;
  }
  return true;
}

std::vector<ir::IndexList> ReadsOf(const ir::Program& program, const ir::Block& block,
                                   ir::BufferId buffer) {
  std::vector<ir::IndexList> reads;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    if (load.buffer == buffer) reads.push_back(program.pool.IndicesOf(load));
  });
  return reads;
}

// Returns the dimensions in which the indices of the reads differ.
std::vector<int> VaryingDimensions(const std::vector<ir::IndexList>& reads) {
  std::vector<int> varying;
  for (size_t d = 0; d < reads[0].size(); ++d) {
    const bool varies =
        absl::c_any_of(reads, [&](const ir::IndexList& read) { return !(read[d] == reads[0][d]); });
    if (varies) varying.push_back(static_cast<int>(d));
  }
  return varying;
}

// Returns the block that computes a buffer if it is the only one and `reader` is the only reader;
// otherwise kNoNode.
NodeId OwnProducer(const ir::Program& program, ir::BufferId buffer, NodeId reader) {
  const std::vector<NodeId> writers = program.WritersOf(buffer);
  if (writers.size() != 1 || program.ReadersOf(buffer) != std::vector<NodeId>{reader} ||
      !WritesWhole(program, program.BlockOf(writers[0]))) {
    return ir::kNoNode;
  }
  return writers[0];
}

std::vector<ir::BufferId> BuffersRead(const ir::Program& program, const ir::Block& block) {
  std::vector<ir::BufferId> buffers;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    if (!absl::c_linear_search(buffers, load.buffer)) buffers.push_back(load.buffer);
  });
  return buffers;
}

}  // namespace

std::optional<Transform> FindTransform(const ir::Program& program, NodeId last) {
  const ir::Block& block = program.BlockOf(last);
  if (block.reducer != ir::Reducer::kNone || block.values.size() != 1 || block.indices.empty())
    return std::nullopt;
  const std::optional<Short> along = ChosenAxis(program, block);
  if (!along.has_value()) return std::nullopt;
  Transform found{.last = last, .along = *along};
  for (const ir::BufferId buffer : BuffersRead(program, block)) {
    const NodeId producer = OwnProducer(program, buffer, last);
    if (producer == ir::kNoNode) continue;
    const ir::Block& first = program.BlockOf(producer);
    const std::vector<ir::IndexList> reads = ReadsOf(program, block, buffer);
    const std::vector<int> varying = VaryingDimensions(reads);
    if (first.reducer != ir::Reducer::kNone || varying.size() != 1) continue;
    const std::optional<Short> chosen = ChosenAxis(program, first);
    if (!chosen.has_value() || chosen->divisor != 0 || chosen->iter == varying[0]) continue;
    const std::optional<Short> across = ShortAxisOf(program, block, reads[0][chosen->iter]);
    if (!across.has_value() || across->iter == along->iter) continue;
    found.first = producer;
    found.across = *across;
    found.chosen = chosen->iter;
    found.contracted = varying[0];
    break;
  }
  if (found.first == ir::kNoNode) return std::nullopt;

  found.vector = static_cast<int>(block.iters.size()) - 1;
  const AtomId lane = block.iters[found.vector].var;
  const bool contiguous = block.indices.back().SingleAtom() == lane &&
                          found.vector != along->iter && found.vector != found.across.iter;
  if (!contiguous) return std::nullopt;

  const ir::Block& first = program.BlockOf(found.first);
  for (const ir::BufferId buffer : BuffersRead(program, first)) {
    const NodeId producer = OwnProducer(program, buffer, found.first);
    if (producer == ir::kNoNode || !CopiesElements(program, program.BlockOf(producer))) continue;
    found.gathered = producer;
    found.tile = VaryingDimensions(ReadsOf(program, first, buffer));
  }
  return found;
}

TransformSchedule::TransformSchedule(schedule::TraceBuilder& trace, const ir::Program& program,
                                     const Transform& transform, const Blocks& blocks,
                                     int64_t lanes, int above) {
  const auto loops_of = [&](const Operand& block, int around, int own) {
    std::vector<Operand> loops = trace.Add("loops", {block}, {}, around + own);
    loops.erase(loops.begin(), loops.begin() + around);
    return loops;
  };
  const auto cut = [&](const Operand& loop, int64_t inner) {
    return trace.Add("split", {loop, schedule::Number(0), schedule::Number(inner)}, {}, 2);
  };
  const ir::Block& last = program.BlockOf(transform.last);
  const std::vector<Operand> loops =
      loops_of(blocks.last, above, static_cast<int>(last.iters.size()));
  Operand across, along;
  for (int i = 0; i < static_cast<int>(last.iters.size()); ++i) {
    if (i == transform.vector) continue;
    const bool is_across = i == transform.across.iter, is_along = i == transform.along.iter;
    if (!is_across && !is_along) {
      tiles_.push_back(loops[i]);
      continue;
    }
    Operand inner = loops[i];
    const int64_t divisor = (is_across ? transform.across : transform.along).divisor;
    if (divisor > 0) {
      const std::vector<Operand> parts = cut(loops[i], std::min(divisor, last.iters[i].extent));
      tiles_.push_back(parts[0]);
      inner = parts[1];
    }
    (is_across ? across : along) = inner;
  }
  const std::vector<Operand> channels =
      cut(loops[transform.vector], std::min(lanes, last.iters[transform.vector].extent));
  channels_ = channels[0];
  std::vector<Operand> order = tiles_;
  order.insert(order.end(), {channels[0], across, along, channels[1]});
  trace.Add("reorder", order);

  const ir::Block& first = program.BlockOf(transform.first);
  const int around = above + static_cast<int>(tiles_.size()) + 1;
  trace.Add("compute_at", {blocks.first, channels[0]});
  const std::vector<Operand> rows =
      loops_of(blocks.first, around, static_cast<int>(first.iters.size()));
  const Operand &contracted = rows[transform.contracted], &chosen = rows[transform.chosen];
  trace.Add("reorder", {contracted, chosen});

  if (transform.gathered != ir::kNoNode) {
    const ir::Block& gathered = program.BlockOf(transform.gathered);
    trace.Add("compute_at", {blocks.gathered, contracted});
    const std::vector<Operand> tile =
        loops_of(blocks.gathered, around + std::min(transform.contracted, transform.chosen) + 1,
                 static_cast<int>(gathered.iters.size()));
    const int lane = static_cast<int>(gathered.indices.size()) - 1;
    std::vector<Operand> inwards(tile.begin() + lane + 1, tile.end());
    inwards.push_back(tile[lane]);
    if (inwards.size() > 1) trace.Add("reorder", inwards);
    vectorized_.push_back(tile[lane]);
    for (const int dimension : transform.tile) unrolled_.push_back(tile[dimension]);
  }
  vectorized_.insert(vectorized_.end(), {rows.back(), channels[1]});
  unrolled_.insert(unrolled_.end(), {chosen, contracted, along, across});
}

void TransformSchedule::SetKinds(schedule::TraceBuilder& trace) const {
  for (const Operand& loop : vectorized_) trace.Add("vectorize", {loop});
  for (const Operand& loop : unrolled_) trace.Add("unroll", {loop});
}

}  // namespace hone::space
