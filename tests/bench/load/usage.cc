#include "tests/bench/load/usage.h"

#include <unistd.h>

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"

namespace hone::load {

double CpuSeconds(pid_t pid) {
  const std::string stat = ReadFile(absl::StrCat("/proc/", pid, "/stat")).value_or("");
  // Starts after the name, which may contain any character: state is field 3, user and system time
  // are 14 and 15.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  const std::vector<std::string> fields =
      absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
  double user = 0, system = 0;
  if (fields.size() < 13 || !absl::SimpleAtod(fields[11], &user) ||
      !absl::SimpleAtod(fields[12], &system)) {
    return 0;
  }
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double Rise(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  if (n < 2) return 0;
  double mean = 0;
  for (const double value : values) mean += value / n;
  double covariance = 0, variance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - (n - 1) / 2;
    covariance += x * (values[i] - mean);
    variance += x * x;
  }
  return covariance / variance * (n - 1);
}

}  // namespace hone::load
