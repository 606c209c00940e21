#include "client/cli/exit_code.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/suggested_command.h"

namespace hone::cli {
namespace {

constexpr char kPayload[] = "hone.cli/exit-code";

constexpr ExitCodeInfo kExitCodes[] = {
    {kExitOk, "ok (also if a list is empty)"},
    {kExitFailed,
     "failed (such as a file that cannot be written, or a missing token or permission)"},
    {kExitUsage, "wrong usage or input (such as a missing file or an unknown name)"},
    {kExitNothingKnown, "nothing known (such as no best, no pin, or no measurement to learn from)"},
    {kExitUnreachable, "server unreachable (such as no answer, or no trusted connection)"},
    {kExitInconclusive, "inconclusive (a check that other work disturbed)"},
    {kExitDrift, "drift (a kernel that --locked names is missing or has changed)"},
    {kExitInterrupted, "interrupted with Ctrl-C"},
};

// Every other error is kExitFailed.
constexpr struct {
  absl::StatusCode status;
  ExitCode code;
} kCodeOfStatus[] = {
    {absl::StatusCode::kOk, kExitOk},
    {absl::StatusCode::kInvalidArgument, kExitUsage},
    {absl::StatusCode::kOutOfRange, kExitUsage},
    {absl::StatusCode::kNotFound, kExitUsage},
    {absl::StatusCode::kUnavailable, kExitUnreachable},
    {absl::StatusCode::kDeadlineExceeded, kExitUnreachable},
};

}  // namespace

absl::Span<const ExitCodeInfo> ExitCodes() { return kExitCodes; }

absl::Status WithExitCode(absl::Status status, ExitCode code) {
  if (!status.ok()) status.SetPayload(kPayload, absl::Cord(absl::StrCat(static_cast<int>(code))));
  return status;
}

ExitCode ExitCodeFor(const absl::Status& status) {
  int given = 0;
  if (const auto payload = status.GetPayload(kPayload);
      payload.has_value() && absl::SimpleAtoi(std::string(*payload), &given)) {
    return static_cast<ExitCode>(given);
  }
  for (const auto& row : kCodeOfStatus) {
    if (row.status == status.code()) return row.code;
  }
  return kExitFailed;
}

absl::Status NothingKnownError(absl::string_view message) {
  return WithExitCode(absl::NotFoundError(FromServer(message)), kExitNothingKnown);
}

absl::Status InconclusiveError(absl::string_view message) {
  return WithExitCode(absl::FailedPreconditionError(message), kExitInconclusive);
}

absl::Status DriftError(absl::string_view message) {
  return WithExitCode(absl::FailedPreconditionError(message), kExitDrift);
}

absl::Status InterruptedError(absl::string_view message) {
  return WithExitCode(absl::CancelledError(message), kExitInterrupted);
}

}  // namespace hone::cli
