#include "server/tuner/space/given_trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/trace.h"

namespace hone::space {
namespace {

constexpr char kName[] = "given";

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

}  // namespace hone::space
