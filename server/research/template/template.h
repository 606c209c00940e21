#ifndef HONE_SERVER_RESEARCH_TEMPLATE_TEMPLATE_H_
#define HONE_SERVER_RESEARCH_TEMPLATE_TEMPLATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"
#include "server/research/template/builder.h"
#include "server/tuner/space/design_space.h"
#include "server/tuner/space/gpu/gpu_limits.h"
#include "server/tuner/space/maker.h"
#include "server/tuner/space/rule.h"
#include "server/tuner/space/tile_limits.h"

namespace hone::space {

// A workload recognized as an operator with templates: one sum of products of two inputs, followed
// by element-wise stages. Recognized by indices, not by names.
struct OperatorForm {
  enum class Kind {
    kMatmul,           // C[i, j] += A[i, k] * B[k, j], with or without transposed operands
    kBatchMatmul,      // the same with batch axes of both operands, at any position
    kConv2d,           // Y[n, h, w, o] += X[n, f(h, r), f(w, s), c] * W[r, s, c, o]
    kGroupedConv2d,    // the same with X[…, c + o / (O / groups) * C]
    kConv2dNchw,       // Y[n, o, h, w] += X[n, c, f(h, r), f(w, s)] * W[o, c, r, s]
    kDepthwiseConv2d,  // Y[n, h, w, c] += X[n, f(h, r), f(w, s), c] * W[r, s, c]
  };
  Kind kind = Kind::kMatmul;
  std::string main;                   // the tensor that the sum computes
  std::vector<std::string> inlined;   // element-wise stages that are inlined
  std::string consumer;               // the last element-wise stage, or ""
  ir::DType dtype = ir::DType::kF32;  // of the sum
  bool guarded = false;               // padding: some taps are skipped
  // Extents of the main stage's loops in block order: spatial, then reduced.
  std::vector<int64_t> extents;
  // Positions in `extents` by role. Matmul: i, j, k, then the batch. Convolutions: n, h, w, o, r,
  // s, c; depthwise ones have no c.
  std::vector<int> axes;
  int64_t groups = 1;            // channel groups
  std::string data, weight;      // X and W, or A and B (the one indexed by j)
  std::vector<int> weight_axes;  // role of each weight dimension, as a position in `axes`
  bool constant_weight = false;
};

// InvalidArgument: no template supports the workload; the message lists the supported forms.
absl::StatusOr<OperatorForm> MatchOperator(const ir::Workload& workload);

// The inputs of a template.
struct TemplateContext {
  const ir::Workload& workload;
  const OperatorForm& form;
  TileLimits limits;         // for the dtype of the sum
  GpuTileLimits gpu_limits;  // the same for GPUs
  double tolerance = 0;      // of the job
};

// A schedule with knobs for one operator, like AutoTVM's: a registry entry that makes one design
// space. Stateless and deterministic.
struct Template {
  absl::string_view name;  // of the design space
  OperatorForm::Kind kind;
  bool (*fits)(const TemplateContext& context);
  void (*write)(const TemplateContext& context, TemplateBuilder& builder);
  absl::string_view meaning;  // one line
  Serves serves = Serves::kCpus;
};

// All templates. To add one: a file here, its declaration in templates.h, and a line in
// template.cc.
absl::Span<const Template> Templates();

// Makes the design spaces of all templates that fit the workload.
extern const SpaceMaker kTemplateMaker;

}  // namespace hone::space

#endif  // HONE_SERVER_RESEARCH_TEMPLATE_TEMPLATE_H_
