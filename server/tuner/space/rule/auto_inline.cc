
#include "absl/algorithm/container.h"
#include "common/schedule/primitive/placement.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {

namespace {

// Whether a block reads several elements or chooses between values, as Winograd's transforms do, or
// rounds to bf16, which takes several instructions on most CPUs and is done for instructions that
// read bf16.
bool IsCostly(const ir::Program& program, const ir::Block& block) {
  int loads = 0;
  bool is_costly = false;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr&) { ++loads; });
  program.pool.Visit(block.values[0], [&](const ir::Expr& expr) {
    is_costly |=
        expr.op == ir::Op::kSelect || (expr.op == ir::Op::kCast && expr.dtype == ir::DType::kBF16);
  });
  return loads > 1 || is_costly;
}

// Whether inlining would compute elements of the buffer repeatedly: its readers are reductions or
// read it at several places.
bool IsReadOften(const ir::Program& program, ir::BufferId buffer) {
  const std::vector<ir::NodeId> readers = program.ReadersOf(buffer);
  return absl::c_any_of(readers, [&](ir::NodeId reader) {
    const ir::Block& block = program.BlockOf(reader);
    int loads = 0;
    program.pool.VisitLoads(block.values[0],
                            [&](const ir::Expr& load) { loads += load.buffer == buffer; });
    return loads > 1 || block.reducer != ir::Reducer::kNone;
  });
}

// Whether several blocks would compute a long expression. A chain of such stages would double the
// expression with each one.
bool IsLongAndShared(const ir::Program& program, const ir::Block& block) {
  constexpr int kMostShared = 32;  // operations
  int operations = 0;
  program.pool.Visit(block.values[0], [&](const ir::Expr&) { ++operations; });
  return operations > kMostShared && program.ReadersOf(block.outputs[0]).size() > 1;
}

}  // namespace

// Inlines a stage without a reduction into its readers, unless its tensor is an output, or the
// stage is costly and would be computed repeatedly.
std::vector<Sketch> ApplyAutoInline(const RuleContext& context, const Sketch& sketch, int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  const ir::Block& block = found->block();
  if (block.reducer != ir::Reducer::kNone || found->output().output ||
      program.ReadersOf(block.outputs[0]).empty()) {
    return {};
  }
  if (IsCostly(program, block) && IsReadOften(program, block.outputs[0])) return {};
  if (IsLongAndShared(program, block)) return {};
  // Guarded values, for example, are not inlined into reductions.
  ir::Program copy = program;
  if (!schedule::ComputeInline(copy, found->id).ok()) return {};
  Sketch inlined = sketch;
  inlined.trace.Add("compute_inline", {inlined.nests[nest].block});
  inlined.nests[nest].state = Nest::State::kDone;
  return {std::move(inlined)};
}

}  // namespace hone::space
