#ifndef HONE_CLIENT_CLI_OUTPUT_FORMAT_H_
#define HONE_CLIENT_CLI_OUTPUT_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// Numbers, durations and sentences in human-readable form.
namespace hone::cli {

// "812 ns", "41.3 us", "10.25 ms", "1.204 s": at most four digits; "-" if it is unknown (0 or
// less).
std::string FormatLatency(double nanoseconds);
// "182.4"; "-" if it is unknown (0 or less).
std::string FormatGflops(double gflops);
// "41.3 us, 182.4 GFLOP/s", or the latency alone for an operator that only moves data; each with ~
// if it is not confirmed.
std::string FormatSpeed(double latency_ns, double gflops, bool confirmed);
// "77.3 %"; "-" if the whole is unknown.
std::string FormatShare(double part, double whole);
// The same for a speed and the peak of a device, both in GFLOP/s; "-" also for an operator that
// only moves data. A share above 100 % is marked with *: a report that has one prints
// kAbovePeakText.
std::string FormatShareOfPeak(double gflops, double peak);
// Whether a share is shown as more than 100 %.
bool IsAbovePeak(double gflops, double peak);
inline constexpr char kAbovePeakText[] =
    "* more than 100 %: the schedule needs fewer operations than the formula counts, as Winograd "
    "convolutions do, or rounds to a type that the CPU multiplies faster, as bf16, or the device "
    "is faster now than when its worker started and measured the peak; a restarted worker measures "
    "it again";
// How many times as fast something has become: "1.07x"; "-" if one of the latencies is unknown (0
// or less). Speed-ups are factors; parts of a whole are percentages.
std::string FormatSpeedUp(double before_ns, double after_ns);
// Puts ~ before a figure that is not confirmed, because the confirmation may change it. "-" stays
// as it is.
std::string MarkUnconfirmed(std::string figure, bool confirmed);
// "0:07", "12:31", "1:02:09".
std::string FormatClock(absl::Duration duration);
// Local time, "2026-11-20 23:32:05".
std::string FormatTime(int64_t unix_ms);
// How long ago something was: "less than a minute ago", "17 minutes ago", "1 hour ago", "3 days
// ago".
std::string FormatAge(absl::Duration age);
// "3.2 GiB", "17 KiB".
std::string FormatBytes(int64_t bytes);

// Says that a list is cut: "only the newest 20 jobs are shown; --limit 0 shows all".
std::string MoreText(int limit, absl::string_view noun);

// Adds a clause to the text of an error: "no such job; hone jobs list lists them". If the text ends
// with a question, that is put in parentheses: "unknown key 'h' (did you mean 'm'?); the keys are
// m".
std::string WithClause(absl::string_view text, absl::string_view clause);

// Parses "60s", "2m", "1h30m", "30d"; a bare number is in seconds. InvalidArgument: the text is not
// a duration, not positive, or longer than a century.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// Prints a text to standard output, with a newline at its end.
void PrintText(absl::string_view text);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_OUTPUT_FORMAT_H_
