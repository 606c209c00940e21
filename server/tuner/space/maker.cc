#include "server/tuner/space/maker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/schedule/trace.h"
#include "common/target/capabilities.h"

namespace hone::space {
namespace {

constexpr char kName[] = "given";

constexpr size_t kShownName = 64;  // characters of an unknown name shown in an error

absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> ByRules(const SpaceRequest& request) {
  return GenerateDesignSpaces(request.workload, *request.target, request.generation);
}

std::vector<SpaceMaker>& Makers() {
  static auto* const makers = new std::vector<SpaceMaker>{
      {"rules", [](const ir::Workload&) { return absl::OkStatus(); }, ByRules,
       "rules propose tilings, packings and compute locations for every block"}};
  return *makers;
}

absl::StatusOr<const SpaceMaker*> Find(absl::string_view name) {
  if (name.empty()) return &Makers()[0];
  for (const SpaceMaker& maker : Makers()) {
    if (maker.name == name) return &maker;
  }
  const auto append_name = [](std::string* out, const SpaceMaker& maker) {
    out->append(maker.name.data(), maker.name.size());
  };
  return absl::InvalidArgumentError(
      absl::StrCat("there is no '", name.substr(0, kShownName),
                   "'; there are: ", absl::StrJoin(Makers(), ", ", append_name),
                   ", and the text of a trace file (trace:FILE on the command line)"));
}

bool UsesF64(const ir::Workload& workload) {
  bool uses = false;
  for (const ir::Tensor& tensor : workload.tensors) uses |= tensor.dtype == ir::DType::kF64;
  for (const ir::Stage& stage : workload.stages) {
    for (const ir::ExprId value : stage.values) {
      workload.pool.Visit(value,
                          [&](const ir::Expr& expr) { uses |= expr.dtype == ir::DType::kF64; });
    }
  }
  return uses;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DesignSpace>> GivenTraceSpace(const ir::Workload& workload,
                                                             absl::string_view text) {
  HONE_ASSIGN_OR_RETURN(schedule::TraceFile file, schedule::ParseTraceFile(text));
  if (file.workload.StructuralDigest() != workload.StructuralDigest()) {
    return absl::InvalidArgumentError(absl::StrCat("the trace schedules ", file.workload.name,
                                                   ", another computation than ", workload.name,
                                                   ":\n", file.workload.ToText()));
  }
  if (file.parsed.decisions.empty()) return DesignSpace::FromText(text, kName);
  return DesignSpace::OfOneCandidate(
      kName, std::make_shared<const ir::Workload>(std::move(file.workload)),
      std::move(file.parsed.trace), std::move(file.parsed.decisions));
}

absl::Span<const SpaceMaker> SpaceMakers() { return Makers(); }

void RegisterSpaceMaker(const SpaceMaker& maker) { Makers().push_back(maker); }

bool IsTraceText(absl::string_view space) { return space.find('\n') != absl::string_view::npos; }

absl::Status CheckSpaceArgument(const ir::Workload& workload, absl::string_view space) {
  if (IsTraceText(space)) return GivenTraceSpace(workload, space).status();
  HONE_ASSIGN_OR_RETURN(const SpaceMaker* maker, Find(space));
  return maker->check(workload);
}

absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> MakeSpaces(const SpaceRequest& request,
                                                                     absl::string_view space) {
  if (!target::ComputesF64(*request.target) && UsesF64(*request.workload)) {
    return absl::InvalidArgumentError(
        absl::StrCat("workload ", request.workload->name, " computes in f64, which ",
                     request.target->Key(), " does not have (feature fp64); use f32"));
  }
  if (IsTraceText(space)) {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<DesignSpace> given,
                          GivenTraceSpace(*request.workload, space));
    std::vector<std::unique_ptr<DesignSpace>> spaces;
    spaces.push_back(std::move(given));
    return spaces;
  }
  HONE_ASSIGN_OR_RETURN(const SpaceMaker* maker, Find(space));
  return maker->make(request);
}

}  // namespace hone::space
