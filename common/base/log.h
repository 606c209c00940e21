#ifndef HONE_COMMON_BASE_LOG_H_
#define HONE_COMMON_BASE_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hone {

enum class LogFormat { kText, kJson };

// From now on spdlog writes to standard error, a line for each message:
//   text   2026-11-21T13:35:30.123 info job 4711: goes on
//   json   {"time":"2026-11-21T13:35:30.123Z","level":"info","program":"hone-server",
//           "job":"4711","message":"goes on"}
// A message that begins with "job ID:" or "worker ID:" is about that job or worker, which json says
// by a field. Control characters are escaped in both, so that a message is always one line.
// InvalidArgument: `format` is neither "text" nor "json", or there is no level of that name.
absl::Status SetUpLog(const std::string& program, absl::string_view format,
                      absl::string_view level);

// A message as it is written, without the newline. For tests.
std::string FormatLogLine(LogFormat format, absl::string_view program, absl::string_view level,
                          absl::Time time, absl::string_view message);

}  // namespace hone

#endif  // HONE_COMMON_BASE_LOG_H_
