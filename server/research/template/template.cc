#include "server/research/template/template.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/research/template/templates.h"

namespace hone::space {
namespace {

using Kind = OperatorForm::Kind;

template <int64_t m>
bool FitsF(const TemplateContext& context) {
  return FitsWinograd(context, m);
}
template <int64_t m>
void WriteF(const TemplateContext& context, TemplateBuilder& builder) {
  WriteWinograd(context, builder, m);
}
template <int64_t m>
void WriteGpuF(const TemplateContext& context, TemplateBuilder& builder) {
  WriteGpuWinograd(context, builder, m);
}

constexpr Template kTemplates[] = {
    {"matmul", Kind::kMatmul, VariableWeight, WriteMatmul, "tiles of a product of two variables"},
    {"matmul_packed", Kind::kMatmul, VariableWeight, WriteMatmulPacked,
     "like matmul, on panels that are packed in each call"},
    {"dense_packed", Kind::kMatmul, ConstantWeight, WriteMatmulPacked,
     "a product with weights that were packed ahead of time"},
    {"batch_matmul", Kind::kBatchMatmul, Always, WriteMatmul, "tiles of each product"},
    {"batch_matmul_packed", Kind::kBatchMatmul, Always, WriteMatmulPacked,
     "like batch_matmul, on panels of the second operands"},
    {"conv2d_direct", Kind::kConv2d, Always, WriteConv2dDirect,
     "unpacked NHWC, tiles of an image row"},
    {"conv2d_packed", Kind::kConv2d, ConstantWeight, WriteConv2dPacked,
     "data and weights in blocks of channels"},
    {"conv2d_winograd2", Kind::kConv2d, FitsF<2>, WriteF<2>, "F(2x2, 3x3)"},
    {"conv2d_winograd4", Kind::kConv2d, FitsF<4>, WriteF<4>, "F(4x4, 3x3)"},
    {"conv2d_winograd6", Kind::kConv2d, FitsF<6>, WriteF<6>, "F(6x6, 3x3)"},
    {"conv2d_grouped", Kind::kGroupedConv2d, Always, WriteConv2dDirect,
     "NHWC, group by group, tiles of an image row"},
    {"conv2d_nchw", Kind::kConv2dNchw, Always, WriteConv2dNchw,
     "channels first, vectors along an image row"},
    {"depthwise_conv2d", Kind::kDepthwiseConv2d, Always, WriteDepthwise,
     "each channel separately, tiles of the image"},
    {"gpu_matmul", Kind::kMatmul, FitsGpuDense, WriteGpuDense,
     "tiles of blocks, virtual threads, threads and registers; operands in shared memory",
     Serves::kGpus},
    {"gpu_matmul_few_rows", Kind::kMatmul, FitsGpuSmallBatch, WriteGpuSmallBatch,
     "the threads of a block share a sum", Serves::kGpus},
    {"gpu_batch_matmul", Kind::kBatchMatmul, FitsGpuDense, WriteGpuDense, "gpu_matmul of each pair",
     Serves::kGpus},
    {"gpu_conv2d_direct", Kind::kConv2d, FitsGpuConv2d, WriteGpuConv2d,
     "tiles as in gpu_matmul, NHWC", Serves::kGpus},
    {"gpu_conv2d_winograd2", Kind::kConv2d, FitsF<2>, WriteGpuF<2>,
     "F(2x2, 3x3); products as in gpu_matmul", Serves::kGpus},
    {"gpu_conv2d_winograd4", Kind::kConv2d, FitsF<4>, WriteGpuF<4>, "F(4x4, 3x3)", Serves::kGpus},
    {"gpu_conv2d_nchw", Kind::kConv2dNchw, FitsGpuConv2d, WriteGpuConv2d,
     "tiles as in gpu_matmul, channels first", Serves::kGpus},
};

absl::Status CheckTemplates(const ir::Workload& workload) {
  return MatchOperator(workload).status();
}

absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> TemplateSpaces(
    const SpaceRequest& request) {
  HONE_RETURN_IF_ERROR(request.workload->Validate());
  HONE_ASSIGN_OR_RETURN(const OperatorForm form, MatchOperator(*request.workload));
  const TemplateContext context{.workload = *request.workload,
                                .form = form,
                                .limits = TileLimits::Of(*request.target, form.dtype),
                                .gpu_limits = GpuTileLimits::Of(*request.target),
                                .tolerance = request.generation.tolerance};
  std::vector<std::unique_ptr<DesignSpace>> spaces;
  absl::Status last;
  for (const Template& entry : kTemplates) {
    if (entry.kind != form.kind || !DoesServe(entry.serves, *request.target) ||
        !entry.fits(context)) {
      continue;
    }
    TemplateBuilder builder;
    entry.write(context, builder);
    absl::StatusOr<std::unique_ptr<DesignSpace>> space =
        std::move(builder).Finish(std::string(entry.name), request.workload);
    if (space.ok()) {
      spaces.push_back(*std::move(space));
    } else {
      last = space.status();
    }
  }
  if (spaces.empty() && last.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workload ", request.workload->name,
        ": there is no template for this operator on a GPU; there are templates for matmul, dense, "
        "batch_matmul, conv2d and conv2d_nchw, without groups"));
  }
  if (spaces.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("workload ", request.workload->name, ": no template fits: ", last.message()));
  }
  return spaces;
}

}  // namespace

absl::Span<const Template> Templates() { return kTemplates; }

const SpaceMaker kTemplateMaker = {
    "templates", CheckTemplates, TemplateSpaces,
    "handwritten schedules with knobs for each operator, like AutoTVM's"};

}  // namespace hone::space
