#include "client/cli/network/other_work.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/target/host.h"

namespace hone::cli {
namespace {

// The system counts the processor time of a machine in ticks of 10 ms for each core. In a shorter
// time, one tick too many looks like a program that uses a large part of a core.
constexpr absl::Duration kLeastTime = absl::Milliseconds(200);

struct rusage OwnUsage() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

// The processor time that other processes have used since the machine was started, in seconds;
// nullopt if the system does not report it. Only differences are meaningful.
std::optional<double> SecondsOfOthers(const std::string& root) {
  const struct rusage usage = OwnUsage();
  const auto seconds = [](const timeval& value) {
    return static_cast<double>(value.tv_sec) + 1e-6 * static_cast<double>(value.tv_usec);
  };
  // "cpu  user nice system idle iowait irq softirq steal …", in clock ticks.
  const std::string line = target::FirstLine(root + "/proc/stat");
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() <= 8) return std::nullopt;
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  double all = 0;
  for (size_t i = 1; i <= 8; ++i) {
    double ticks = 0;
    const bool idle = i == 4 || i == 5;
    if (!idle && absl::SimpleAtod(words[i], &ticks)) all += ticks * tick;
  }
  return all - seconds(usage.ru_utime) - seconds(usage.ru_stime);
}

}  // namespace

OtherWork::OtherWork(const Clock* clock, std::string root)
    : clock_(clock),
      root_(std::move(root)),
      begin_(clock->Now()),
      others_s_(SecondsOfOthers(root_)),
      interruptions_(OwnUsage().ru_nivcsw) {}

int64_t OtherWork::Interruptions() const { return OwnUsage().ru_nivcsw - interruptions_; }

std::optional<double> OtherWork::Cores() const {
  const absl::Duration time = clock_->Now() - begin_;
  const std::optional<double> others = SecondsOfOthers(root_);
  if (time < kLeastTime || !others.has_value() || !others_s_.has_value()) return std::nullopt;
  return std::max(0.0, (*others - *others_s_) / absl::ToDoubleSeconds(time));
}

}  // namespace hone::cli
