#include "client/cli/space_argument.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/schedule/trace.h"

namespace hone::cli {

absl::StatusOr<std::string> ReadSpaceArgument(const std::string& argument) {
  if (argument == "rules") return std::string();
  absl::string_view path = argument;
  if (!absl::ConsumePrefix(&path, "trace:") || path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--space ", argument, ": it is rules, or trace:FILE"));
  }
  HONE_ASSIGN_OR_RETURN(std::string text, ReadTextArgument(std::string(path)));
  const absl::Status parsed = schedule::ParseTraceFile(text).status();
  if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ":", parsed.message()));
  return text;
}

absl::StatusOr<WorkloadArgument> WorkloadOfTrace(const std::string& title,
                                                 const std::string& text) {
  HONE_ASSIGN_OR_RETURN(schedule::TraceFile file, schedule::ParseTraceFile(text));
  WorkloadArgument argument;
  argument.title = title;
  argument.text = file.workload.ToText();
  argument.workload = std::move(file.workload);
  return argument;
}

}  // namespace hone::cli
