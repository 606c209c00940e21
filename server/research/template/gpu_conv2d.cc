#include <memory>

#include "server/research/template/gpu_contraction.h"
#include "server/research/template/templates.h"

namespace hone::space {
namespace {

// The order of roles in OperatorForm::axes.
enum ConvRole { kN, kH, kW, kO, kR, kS, kC };

ir::Program ProgramFor(const TemplateContext& context) {
  return ir::Program::FromWorkload(std::make_shared<const ir::Workload>(context.workload));
}

// The threads along x compute results that are adjacent in memory.
GpuContraction ConvolutionOf(const TemplateContext& context, const ir::Program& program) {
  const OperatorForm& form = context.form;
  const auto at = [&](ConvRole role) { return form.axes[role]; };
  const bool channels_first = form.kind == OperatorForm::Kind::kConv2dNchw;
  return {.program = program,
          .block = program.FindBlock(form.main),
          .batch = {at(kN)},
          .tiled = channels_first ? std::vector<int>{at(kO), at(kH), at(kW)}
                                  : std::vector<int>{at(kH), at(kW), at(kO)},
          .reduced = {at(kC), at(kR), at(kS)},
          .consumer = form.consumer};
}

}  // namespace

bool FitsGpuConv2d(const TemplateContext& context) {
  const ir::Program program = ProgramFor(context);
  return FitsGpuContraction(ConvolutionOf(context, program), context.gpu_limits);
}

void WriteGpuConv2d(const TemplateContext& context, TemplateBuilder& builder) {
  InlineStages(context, builder);
  const ir::Program program = ProgramFor(context);
  WriteGpuContraction(ConvolutionOf(context, program), context.gpu_limits, builder);
}

}  // namespace hone::space
