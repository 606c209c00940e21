#include <algorithm>
#include <memory>

#include "server/research/template/gpu_contraction.h"
#include "server/research/template/templates.h"
#include "server/tuner/space/gpu/gpu_editor.h"

namespace hone::space {
namespace {

using schedule::Operand;

constexpr int64_t kSmallBatch = 32;  // rows; with more, tiles reuse more than sums in parts save

// The order of roles in OperatorForm::axes; a batch follows.
enum MatmulRole { kI, kJ, kK, kBatch };

ir::Program MatmulProgram(const TemplateContext& context) {
  return ir::Program::FromWorkload(std::make_shared<const ir::Workload>(context.workload));
}

GpuContraction MatmulOf(const TemplateContext& context, const ir::Program& program) {
  const OperatorForm& form = context.form;
  return {.program = program,
          .block = program.FindBlock(form.main),
          .batch = std::vector<int>(form.axes.begin() + kBatch, form.axes.end()),
          .tiled = {form.axes[kI], form.axes[kJ]},
          .reduced = {form.axes[kK]},
          .reduction_parts = 3,
          .consumer = form.consumer};
}

}  // namespace

bool FitsGpuDense(const TemplateContext& context) {
  const ir::Program program = MatmulProgram(context);
  return FitsGpuContraction(MatmulOf(context, program), context.gpu_limits);
}

void WriteGpuDense(const TemplateContext& context, TemplateBuilder& builder) {
  InlineStages(context, builder);
  const ir::Program program = MatmulProgram(context);
  WriteGpuContraction(MatmulOf(context, program), context.gpu_limits, builder);
}

bool FitsGpuSmallBatch(const TemplateContext& context) {
  return context.form.extents[context.form.axes[kI]] < kSmallBatch;
}

void WriteGpuSmallBatch(const TemplateContext& context, TemplateBuilder& b) {
  const OperatorForm& form = context.form;
  InlineStages(context, b);
  const Operand main = b.Block(form.main);
  const std::vector<KnobLoop> loops = b.Loops(main, form.extents);
  const KnobLoop& reduction = loops[form.axes[kK]];
  const std::vector<KnobLoop> k =
      b.DefineSplit(reduction, std::min(reduction.extent.extent, context.gpu_limits.max_threads));
  GpuEditor edit(b.trace());
  GpuEditor::Operands results;
  for (const KnobLoop& loop : loops) {
    if (&loop != &reduction) results.push_back(loop.loop);
  }
  GpuEditor::Operands order = results;
  order.insert(order.end(), {k[1].loop, k[0].loop});
  edit.Add("reorder", order);
  const Operand block = edit.Fuse(results);
  if (!form.consumer.empty()) edit.Add("reverse_compute_at", {b.Block(form.consumer), block});
  edit.BindBlocks({block});
  edit.BindThreads({k[1].loop});
}

}  // namespace hone::space
