#include "worker/agent/program_output.h"

#include <poll.h>
#include <sysexits.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "worker/agent/child_process.h"

namespace hone::agent {
namespace {

constexpr absl::Duration kProgramLimit = absl::Seconds(60);

}  // namespace

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& command) {
  HONE_ASSIGN_OR_RETURN(const auto child, ChildProcess::Start(command));
  child->CloseInput();
  const absl::Time deadline = SteadyNow() + kProgramLimit;
  std::string text;
  char buffer[4096];
  // Ends with the program or at the deadline, after which Wait kills it.
  for (;;) {
    pollfd ready{.fd = child->output(), .events = POLLIN};
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - SteadyNow());
    if (left_ms <= 0 || poll(&ready, 1, static_cast<int>(left_ms)) == 0) break;
    const ssize_t n = read(child->output(), buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, n);
  }
  const ChildEnd end = child->Wait(deadline);
  if (end.signal == 0 && end.status == 0) return text;
  if (end.signal == 0 && end.status == EX_TEMPFAIL) {
    return absl::UnavailableError(absl::StripAsciiWhitespace(child->TakeErrorOutput()));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(absl::StrJoin(command, " "), " failed (", end.ToString(),
                   "): ", absl::StripAsciiWhitespace(child->TakeErrorOutput())));
}

}  // namespace hone::agent
