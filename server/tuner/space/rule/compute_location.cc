
#include "absl/algorithm/container.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {
namespace {

using schedule::Operand;

// Whether a block writes one tensor that is not an output, at its own iteration variables, as
// compute_at requires.
bool CanMove(const ir::Program& program, const ir::Block& block) {
  if (block.outputs.size() != 1 || program.buffers[block.outputs[0]].output ||
      program.buffers[block.outputs[0]].constant || block.indices.empty()) {
    return false;
  }
  return absl::c_all_of(block.indices, [&](const ir::Index& index) {
    return absl::c_any_of(block.iters, [&](const ir::BlockIter& iter) {
      return !iter.reduce && index.SingleAtom() == iter.var;
    });
  });
}

}  // namespace

// Computes a block that is neither inlined nor tiled at a tile loop of its only reader, a tiled
// block. The loop is a decision (Ansor's and MetaSchedule's random compute location). The block is
// then recomputed for each tile, but read from a near cache.
std::vector<Sketch> ApplyComputeLocation(const RuleContext& context, const Sketch& sketch,
                                         int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  const ir::Block& block = found->block();
  if (!CanMove(program, block)) return {};
  const std::vector<ir::NodeId> readers = program.ReadersOf(block.outputs[0]);
  if (readers.size() != 1) return {};
  const auto reader = absl::c_find_if(sketch.nests, [&](const Nest& other) {
    return other.name == program.BlockOf(readers[0]).name;
  });
  if (reader == sketch.nests.end() || reader->state != Nest::State::kTiled) return {};

  // Only the tile loops are candidates. Further inside, elements would be computed for each step of
  // the micro-kernel.
  const Tiling& tiling = *reader->tiling;
  const int64_t places = tiling.loops_to_inner + (tiling.reduce_outer.has_value() ? 1 : 0);
  Sketch moved = sketch;
  SketchEditor edit(moved);
  Nest& producer = moved.nests[nest];
  const Operand place =
      edit.Add("sample_compute_location", {producer.block}, {{"outermost", {places}}})[0];
  edit.Add("compute_at", {producer.block, place});
  const auto rank = static_cast<int>(block.iters.size());
  const std::vector<Operand> loops =
      edit.Add("loops", {producer.block, Literal(rank)}, {}, rank);  // the innermost ones
  const auto lane = block.indices.size() - 1;  // reductions follow the spatial loops
  const std::vector<Operand> sizes = edit.Add(
      "sample_tile", {loops[lane]}, {{"parts", {2}}, {"max_inner", {found->limits.lanes}}});
  const std::vector<Operand> parts = edit.Add("split", {loops[lane], sizes[0], sizes[1]}, {}, 2);
  std::vector<Operand> order(loops.begin() + lane + 1, loops.end());
  order.push_back(parts[1]);
  if (order.size() > 1) edit.Add("reorder", order);
  edit.Add("vectorize", {parts[1]});
  producer.state = Nest::State::kDone;
  moved.name.push_back("at");
  moved.name.push_back(sketch.nests[nest].name);
  ++moved.minor;
  return {sketch, std::move(moved)};
}

}  // namespace hone::space
