#ifndef HONE_SERVER_RESEARCH_TEMPLATE_TEMPLATE_H_
#define HONE_SERVER_RESEARCH_TEMPLATE_TEMPLATE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"
#include "server/research/template/builder.h"
#include "server/research/template/operator_form.h"
#include "server/tuner/space/design_space.h"
#include "server/tuner/space/gpu/gpu_limits.h"
#include "server/tuner/space/maker.h"
#include "server/tuner/space/rule.h"
#include "server/tuner/space/tile_limits.h"

namespace hone::space {

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
