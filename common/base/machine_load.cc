#include "common/base/machine_load.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/file.h"

namespace hone {
namespace {

// A process with threads that run, or wait for a core or a disk, at this moment.
struct BusyProcess {
  int pid = 0;
  // In full if its command line shows it. Consists of letters, digits and "-_.+:"; other characters
  // are replaced by "?".
  std::string name;
  int threads = 0;  // those that are busy
};

// Returns the processes that load this machine now, those with the most busy threads first. Leaves
// out Hone's programs, process 1 and the threads of the kernel.
// `root` replaces / in tests.
std::vector<BusyProcess> BusyProcesses(const std::string& root = "");

constexpr int kInit = 1;
constexpr int kKernelThreads = 2;    // kthreadd, the parent of all kernel threads
constexpr size_t kKernelsName = 15;  // the kernel truncates names to this length

// Returns the entries of a folder whose names are numbers: processes or threads. Errors are
// ignored, because the folder disappears when its process ends.
std::vector<int> NumbersIn(const std::string& folder) {
  std::vector<int> numbers;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    int number = 0;
    if (absl::SimpleAtoi(entry->path().filename().string(), &number)) numbers.push_back(number);
  }
  return numbers;
}

// A process or thread, parsed from its line in /proc: "17 (cc1plus) R 1 …".
struct Stat {
  std::string name;
  bool busy = false;
  int parent = 0;  // the parent of the process
};

Stat ReadStat(const std::string& stat_path) {
  Stat stat;
  const absl::StatusOr<std::string> line = ReadFile(stat_path);
  if (!line.ok()) return stat;
  const size_t begin = line->find('('), end = line->rfind(") ");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return stat;
  stat.name = line->substr(begin + 1, end - begin - 1);
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(*line).substr(end + 2), ' ');
  stat.busy = fields[0] == "R" || fields[0] == "D";
  if (fields.size() > 1 && !absl::SimpleAtoi(fields[1], &stat.parent)) stat.parent = 0;
  return stat;
}

// Returns the full name of a process. `name` is its name in /proc. If that is truncated, a word of
// the command line (the program or a script) contains the full name, unless the process has changed
// its name.
std::string FullName(const std::string& name, const std::string& folder) {
  if (name.size() < kKernelsName) return name;
  const absl::StatusOr<std::string> line = ReadFile(folder + "/cmdline");
  if (!line.ok()) return name;
  for (const absl::string_view word : absl::StrSplit(*line, '\0')) {
    const size_t slash = word.rfind(absl::StrCat("/", name));
    absl::string_view base = slash == absl::string_view::npos ? word : word.substr(slash + 1);
    base = base.substr(0, base.find(' '));  // some processes add a description of their state
    if (absl::StartsWith(base, name) && !absl::StrContains(base, '/')) return std::string(base);
  }
  return name;
}

// Replaces unusual characters; see BusyProcess::name.
std::string Plain(std::string name) {
  for (char& c : name) {
    const bool plain =
        absl::ascii_isalnum(static_cast<unsigned char>(c)) != 0 || absl::StrContains("-_.+:", c);
    if (!plain) c = '?';
  }
  return name;
}

std::vector<BusyProcess> BusyProcesses(const std::string& root) {
  std::vector<BusyProcess> busy;
  for (const int pid : NumbersIn(root + "/proc")) {
    if (pid == getpid() || pid == kInit || pid == kKernelThreads) continue;
    const std::string folder = absl::StrCat(root, "/proc/", pid);
    BusyProcess process{.pid = pid};
    for (const int thread : NumbersIn(folder + "/task")) {
      if (ReadStat(absl::StrCat(folder, "/task/", thread, "/stat")).busy) ++process.threads;
    }
    if (process.threads == 0) continue;
    const Stat stat = ReadStat(folder + "/stat");
    if (stat.parent == kKernelThreads) continue;
    process.name = Plain(FullName(stat.name, folder));
    // Hone's own programs do not disturb measurements (common/base/host_lock.h).
    if (absl::StartsWith(process.name, "hone")) continue;
    busy.push_back(std::move(process));
  }
  absl::c_sort(busy, [](const BusyProcess& a, const BusyProcess& b) {
    return a.threads != b.threads ? a.threads > b.threads : a.pid < b.pid;
  });
  return busy;
}

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
