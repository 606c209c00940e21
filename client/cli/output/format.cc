#include "client/cli/output/format.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/counted.h"

namespace hone::cli {
namespace {

constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 100);

// Four significant digits, or more if the integer part has more.
std::string FourDigits(double value) {
  const int whole = value < 1 ? 1 : static_cast<int>(std::floor(std::log10(value))) + 1;
  return absl::StrFormat("%.*f", std::max(0, 4 - whole), value);
}

}  // namespace

std::string FormatLatency(double nanoseconds) {
  if (!(nanoseconds > 0)) return "-";
  if (nanoseconds < 1e3) return absl::StrCat(FourDigits(nanoseconds), " ns");
  if (nanoseconds < 1e6) return absl::StrCat(FourDigits(nanoseconds / 1e3), " us");
  if (nanoseconds < 1e9) return absl::StrCat(FourDigits(nanoseconds / 1e6), " ms");
  return absl::StrCat(FourDigits(nanoseconds / 1e9), " s");
}

std::string FormatGflops(double gflops) {
  if (!(gflops > 0)) return "-";
  return gflops < 0.1 ? absl::StrFormat("%.2g", gflops) : absl::StrFormat("%.1f", gflops);
}

std::string FormatShare(double part, double whole) {
  return whole > 0 ? absl::StrFormat("%.1f %%", 100 * part / whole) : "-";
}

std::string FormatShareOfPeak(double gflops, double peak) {
  if (!(gflops > 0)) return "-";
  return absl::StrCat(FormatShare(gflops, peak), IsAbovePeak(gflops, peak) ? " *" : "");
}

bool IsAbovePeak(double gflops, double peak) {
  constexpr double kShown = 1.0005;  // as 100.1 %
  return peak > 0 && gflops >= kShown * peak;
}

std::string FormatSpeedUp(double before_ns, double after_ns) {
  return before_ns > 0 && after_ns > 0 ? absl::StrFormat("%.2fx", before_ns / after_ns) : "-";
}

std::string MarkUnconfirmed(std::string figure, bool confirmed) {
  return confirmed || figure == "-" ? figure : absl::StrCat("~", figure);
}

std::string FormatSpeed(double latency_ns, double gflops, bool confirmed) {
  const std::string latency = MarkUnconfirmed(FormatLatency(latency_ns), confirmed);
  if (!(gflops > 0)) return latency;
  return absl::StrCat(latency, ", ", MarkUnconfirmed(FormatGflops(gflops), confirmed), " GFLOP/s");
}

std::string FormatClock(absl::Duration duration) {
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(duration));
  if (seconds >= 3600)
    return absl::StrFormat("%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return absl::StrFormat("%d:%02d", seconds / 60, seconds % 60);
}

std::string FormatTime(int64_t unix_ms) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMillis(unix_ms),
                          absl::LocalTimeZone());
}

std::string FormatAge(absl::Duration age) {
  if (age < absl::Minutes(1)) return "less than a minute ago";
  if (age < absl::Hours(1)) return Counted(age / absl::Minutes(1), "minute") + " ago";
  if (age < absl::Hours(48)) return Counted(age / absl::Hours(1), "hour") + " ago";
  return Counted(age / absl::Hours(24), "day") + " ago";
}

std::string FormatBytes(int64_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat(value < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

std::string WithClause(absl::string_view text, absl::string_view clause) {
  const size_t question = text.rfind("; ");
  if (!absl::EndsWith(text, "?") || question == absl::string_view::npos) {
    return absl::StrCat(text, "; ", clause);
  }
  return absl::StrCat(text.substr(0, question), " (", text.substr(question + 2), "); ", clause);
}

std::string MoreText(int limit, absl::string_view noun) {
  return absl::StrCat("only the newest ", Counted(limit, noun), limit == 1 ? " is" : " are",
                      " shown; --limit 0 shows all");
}

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  absl::Duration duration;
  double number = 0;
  absl::string_view days = text;
  const bool is_duration = absl::SimpleAtod(text, &number)
                               ? (duration = absl::Seconds(number), true)
                           : absl::ConsumeSuffix(&days, "d") && absl::SimpleAtod(days, &number)
                               ? (duration = absl::Hours(24 * number), true)
                               : absl::ParseDuration(text, &duration);
  const char* const wrong = !is_duration                       ? " is not a duration"
                            : duration <= absl::ZeroDuration() ? " is not positive"
                            : duration > kLongest              ? " is too long"
                                                               : nullptr;
  if (wrong == nullptr) return duration;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\"", wrong, "; write a duration such as 60s, 2m, 1h30m or 30d"));
}

void PrintText(absl::string_view text) {
  absl::PrintF("%s%s", text, text.empty() || text.back() == '\n' ? "" : "\n");
}

}  // namespace hone::cli
