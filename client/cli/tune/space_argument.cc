#include "client/cli/tune/space_argument.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/shell_word.h"
#include "common/base/status_macros.h"
#include "common/schedule/trace.h"

namespace hone::cli {
namespace {

constexpr char kRules[] = "rules";  // the default

// Whether it can be the name of a space maker. The server knows which names exist.
bool IsName(absl::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
}

}  // namespace

absl::StatusOr<std::string> ReadSpaceArgument(const std::string& argument) {
  absl::string_view path = argument;
  if (!absl::ConsumePrefix(&path, "trace:")) {
    if (IsName(argument)) return argument == kRules ? std::string() : argument;
    return absl::InvalidArgumentError(absl::StrCat(
        "--space ", argument, ": expected a name, such as rules or templates, or trace:FILE"));
  }
  if (path.empty()) return absl::InvalidArgumentError("--space trace: names no file");
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
  argument.words = absl::StrCat("--space ", ShellWord(title));
  argument.text = file.workload.ToText();
  argument.workload = std::move(file.workload);
  return argument;
}

}  // namespace hone::cli
