#ifndef HONE_COMMON_BASE_LOG_H_
#define HONE_COMMON_BASE_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hone {

enum class LogFormat { kText, kJson };

// Makes spdlog write to standard error, one line per message:
//   text   2026-11-21T13:35:30.123 info job 4711: goes on
//   json   {"time":"2026-11-21T13:35:30.123Z","level":"info","program":"hone-server",
//           "job":"4711","message":"goes on"}
// In JSON, the prefix "job ID:" or "worker ID:" of a message becomes a field. Control characters
// are escaped in both formats. InvalidArgument: unknown format or level.
absl::Status SetUpLog(const std::string& program, absl::string_view format,
                      absl::string_view level);

// Formats a message without the newline. Public for tests.
std::string FormatLogLine(LogFormat format, absl::string_view program, absl::string_view level,
                          absl::Time time, absl::string_view message);

}  // namespace hone

#endif  // HONE_COMMON_BASE_LOG_H_
