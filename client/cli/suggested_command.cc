#include "client/cli/suggested_command.h"

#include "absl/strings/str_cat.h"
#include "client/cli/shell_word.h"

namespace hone::cli {
namespace {

// The options as a shell reads them, each after a blank.
struct Repeated {
  std::string connection;
  std::string target;
};

Repeated& TheRepeated() {
  static auto* const repeated = new Repeated;
  return *repeated;
}

}  // namespace

void SetRepeatedOptions(absl::Span<const RepeatedOption> connection, absl::string_view target) {
  Repeated& repeated = TheRepeated();
  repeated = {};
  for (const RepeatedOption& option : connection) {
    absl::StrAppend(&repeated.connection, " ", option.name);
    if (!option.value.empty()) absl::StrAppend(&repeated.connection, " ", ShellWord(option.value));
  }
  if (!target.empty()) repeated.target = absl::StrCat(" --target ", ShellWord(target));
}

std::string SuggestedCommand(absl::string_view words) {
  return absl::StrCat("hone ", words, TheRepeated().connection);
}

std::string SuggestedCommandForTarget(absl::string_view words) {
  return absl::StrCat("hone ", words, TheRepeated().target, TheRepeated().connection);
}

std::string ToleranceOption(double tolerance) {
  return tolerance > 0 ? absl::StrCat(" --tolerance ", tolerance) : "";
}

}  // namespace hone::cli
