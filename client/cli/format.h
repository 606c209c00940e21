#ifndef HONE_CLIENT_CLI_FORMAT_H_
#define HONE_CLIENT_CLI_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// Numbers as people read them, and the durations that they type.
namespace hone::cli {

// "812 ns", "41.3 us", "10.25 ms", "1.204 s": four digits at most.
std::string FormatLatency(double nanoseconds);
// "182.4"; "-" when it is not known (0 or less).
std::string FormatGflops(double gflops);
// "77.3 %"; "-" when the whole is not known.
std::string FormatShare(double part, double whole);
// "0:07", "12:31", "1:02:09".
std::string FormatClock(absl::Duration duration);
// Local time, "2026-11-20 23:32:05".
std::string FormatTime(int64_t unix_ms);
// "3.2 GiB", "17 KiB".
std::string FormatBytes(int64_t bytes);

// "60s", "2m", "1h30m", "30d"; a bare number counts seconds. InvalidArgument: something else, or
// not positive.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// Prints a text of one line or more on standard output, and ends its last line.
void PrintText(absl::string_view text);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_FORMAT_H_
