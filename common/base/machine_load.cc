#include "common/base/machine_load.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/busy_processes.h"
#include "common/base/file.h"

namespace hone {
namespace {

constexpr double kBusyLoad = 0.5;  // average number of runnable processes in the last minute
constexpr size_t kMaxBusyShown = 5;
constexpr int kLooks = 10;  // for a busy process, with a pause between two of them
constexpr absl::Duration kPause = absl::Milliseconds(20);

// Looks several times, because a program that is busy half of the time also sleeps half of it.
std::vector<BusyProcess> FindBusyProcesses(const std::string& root) {
  std::vector<BusyProcess> busy = BusyProcesses(root);
  for (int look = 1; busy.empty() && look < kLooks; ++look) {
    absl::SleepFor(kPause);
    busy = BusyProcesses(root);
  }
  return busy;
}

// Names the programs that load the machine now, and says what to do.
std::string WhatIsBusy(const std::vector<BusyProcess>& busy) {
  const size_t shown = std::min(busy.size(), kMaxBusyShown);
  const std::string list = absl::StrJoin(
      busy.begin(), busy.begin() + shown, ", ", [](std::string* out, const BusyProcess& process) {
        absl::StrAppend(out, process.name, " (process ", process.pid, ")");
      });
  return absl::StrCat(
      "wait until they end, or stop them while tuning: ", list,
      shown < busy.size() ? absl::StrCat(" and ", busy.size() - shown, " more") : "");
}

}  // namespace

std::optional<MachineLoad> CheckLoad(const std::string& root) {
  const absl::StatusOr<std::string> text = ReadFile(root + "/proc/loadavg");
  double average = 0;
  if (!text.ok() || !absl::SimpleAtod(text->substr(0, text->find(' ')), &average)) {
    return std::nullopt;
  }
  MachineLoad load{.finding = absl::StrFormat("%.2f", average)};
  if (average <= kBusyLoad) return load;
  // The average still contains programs that ended up to a minute ago, which disturb nothing.
  const std::vector<BusyProcess> busy = FindBusyProcesses(root);
  load.disturbs = !busy.empty();
  if (busy.empty()) {
    absl::StrAppend(&load.finding, ", of programs that have ended");
  } else {
    load.advice = absl::StrCat(
        "other programs keep this machine busy, which disturbs measurements; ", WhatIsBusy(busy));
  }
  return load;
}

}  // namespace hone
