#include <algorithm>

#include "server/space/rule/rules.h"

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
  return std::all_of(block.indices.begin(), block.indices.end(), [&](const ir::Index& index) {
    return std::any_of(block.iters.begin(), block.iters.end(), [&](const ir::BlockIter& iter) {
      return !iter.reduce && index.SingleAtom() == iter.var;
    });
  });
}

}  // namespace

// A block that is neither inlined nor tiled, and that only one tiled block reads, may be computed
// where a tile needs it, at a loop that is a decision (Ansor's and MetaSchedule's random compute
// location). It is then recomputed for each tile, but read from a near cache.
std::vector<Sketch> ApplyComputeLocation(const RuleContext& context, const Sketch& sketch,
                                         int nest) {
  if (sketch.nests[nest].state != Nest::State::kOpen) return {};
  const absl::StatusOr<ir::Program> program = context.ProgramOf(sketch);
  if (!program.ok()) return {};
  const ir::NodeId id = program->FindBlock(sketch.nests[nest].name);
  if (id == ir::kNoNode) return {};
  const ir::Block& block = program->BlockOf(id);
  if (!CanMove(*program, block)) return {};
  const std::vector<ir::NodeId> readers = program->ReadersOf(block.outputs[0]);
  if (readers.size() != 1) return {};
  const auto reader = std::find_if(
      sketch.nests.begin(), sketch.nests.end(),
      [&](const Nest& other) { return other.name == program->BlockOf(readers[0]).name; });
  if (reader == sketch.nests.end() || reader->state != Nest::State::kTiled) return {};

  // Only the tile loops; further inside, elements would be computed for each micro-kernel step.
  const Tiling& tiling = *reader->tiling;
  const int64_t places = tiling.loops_to_inner + (tiling.reduce_outer.has_value() ? 1 : 0);
  const TileLimits limits =
      TileLimits::Of(*context.target, program->buffers[block.outputs[0]].dtype);
  Sketch moved = sketch;
  const auto add = [&](absl::string_view primitive, std::vector<Operand> operands,
                       std::vector<schedule::Attribute> attributes = {}, int results = -1) {
    return moved.trace.Add(primitive, std::move(operands), std::move(attributes), results);
  };
  Nest& producer = moved.nests[nest];
  const Operand place =
      add("sample_compute_location", {producer.block}, {{"outermost", {places}}})[0];
  add("compute_at", {producer.block, place});
  const auto rank = static_cast<int>(block.iters.size());
  const std::vector<Operand> loops = add("loops", {producer.block, Literal(rank)}, {}, rank);
  const auto lane = block.indices.size() - 1;  // reductions follow the spatial loops
  const std::vector<Operand> sizes =
      add("sample_tile", {loops[lane]}, {{"parts", {2}}, {"max_inner", {limits.lanes}}});
  const std::vector<Operand> parts = add("split", {loops[lane], sizes[0], sizes[1]}, {}, 2);
  std::vector<Operand> order(loops.begin() + lane + 1, loops.end());
  order.push_back(parts[1]);
  if (order.size() > 1) add("reorder", order);
  add("vectorize", {parts[1]});
  producer.state = Nest::State::kDone;
  moved.name.push_back("at");
  moved.name.push_back(sketch.nests[nest].name);
  ++moved.minor;
  return {sketch, std::move(moved)};
}

}  // namespace hone::space
