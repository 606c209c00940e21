#include "worker/runner/machine_monitor.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/target/host.h"

namespace hone::runner {
namespace {

constexpr double kShortestS = 0.25;  // ticks are 10 ms, so shorter intervals say nothing
constexpr double kLongestS = 60;
constexpr double kPastStepS = 0.1;
constexpr double kHottestC = 150;  // missing sensors report arbitrary values
// Sensors that stay open. A machine with many processors has a sensor per core, but this process
// may only have some hundred open files.
constexpr size_t kMostSensors = 32;

int Open(const std::string& path) { return open(path.c_str(), O_RDONLY | O_CLOEXEC); }

double Seconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool IsOfProcessor(absl::string_view sensor) {
  for (const absl::string_view name :
       {"coretemp", "k10temp", "zenpower", "cpu", "soc", "x86_pkg"}) {
    if (absl::StartsWithIgnoreCase(sensor, name)) return true;
  }
  return false;
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

CpuTimes ParseCpuTimes(absl::string_view proc_stat) {
  CpuTimes times;
  for (const absl::string_view line : absl::StrSplit(proc_stat, '\n')) {
    if (!absl::StartsWith(line, "cpu")) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words[0] != "cpu") {
      ++times.cpus;
      continue;
    }
    // user nice system idle iowait irq softirq steal; user includes guests.
    std::array<int64_t, 8> ticks = {};
    for (size_t i = 0; i < ticks.size() && i + 1 < words.size(); ++i) {
      if (!absl::SimpleAtoi(words[i + 1], &ticks[i])) return {};
    }
    for (const int64_t tick : ticks) times.total += tick;
    times.steal = ticks[7];
    times.busy = times.total - ticks[3] - ticks[4] - ticks[7];
  }
  return times;
}

double ParseMegahertz(absl::string_view proc_cpuinfo) {
  double most = 0;
  for (const absl::string_view line : absl::StrSplit(proc_cpuinfo, '\n')) {
    // A virtual machine sees the nominal frequency, whatever the real clock does.
    if (absl::StartsWith(line, "flags") && absl::StrContains(line, " hypervisor")) return 0;
    if (!absl::StartsWith(line, "cpu MHz")) continue;
    double value = 0;
    const size_t colon = line.find(':');
    if (colon != absl::string_view::npos && absl::SimpleAtod(line.substr(colon + 1), &value)) {
      most = std::max(most, value);
    }
  }
  return most;
}

MachineMonitor::MachineMonitor(const std::string& root)
    : stat_(Open(root + "/proc/stat")),
      cpuinfo_(Open(root + "/proc/cpuinfo")),
      frequency_(Open(target::FrequencyFolder(root) + "/scaling_cur_freq")) {
  const auto add = [this](const std::string& path) {
    if (temperatures_.size() >= kMostSensors) return;
    if (const int fd = Open(path); fd >= 0) temperatures_.push_back(fd);
  };
  for (const std::string& sensor : FilesIn(root + "/sys/class/hwmon")) {
    if (!IsOfProcessor(target::FirstLine(sensor + "/name"))) continue;
    for (const std::string& file : FilesIn(sensor)) {
      const std::string name = std::filesystem::path(file).filename();
      if (absl::StartsWith(name, "temp") && absl::EndsWith(name, "_input")) add(file);
    }
  }
  if (!temperatures_.empty()) return;
  for (const std::string& zone : FilesIn(root + "/sys/class/thermal")) {
    if (IsOfProcessor(target::FirstLine(zone + "/type"))) add(zone + "/temp");
  }
}

MachineMonitor::~MachineMonitor() {
  for (const int fd : temperatures_) close(fd);
  for (const int fd : {stat_, cpuinfo_, frequency_}) {
    if (fd >= 0) close(fd);
  }
}

std::string MachineMonitor::ReadAgain(int fd) {
  std::string text;
  std::array<char, 16384> buffer;
  for (off_t at = 0; fd >= 0;) {
    const ssize_t size = pread(fd, buffer.data(), buffer.size(), at);
    if (size <= 0) break;
    text.append(buffer.data(), size);
    at += size;
  }
  return text;
}

MachineMonitor::State MachineMonitor::Look() {
  return Look(Seconds(CLOCK_MONOTONIC), Seconds(CLOCK_PROCESS_CPUTIME_ID));
}

MachineMonitor::State MachineMonitor::Look(double now_s, double own_cpu_s) {
  State state;
  double kilohertz = 0;
  if (absl::SimpleAtod(absl::StripAsciiWhitespace(ReadAgain(frequency_)), &kilohertz)) {
    state.frequency_mhz = kilohertz / 1000;
  } else {
    state.frequency_mhz = ParseMegahertz(ReadAgain(cpuinfo_));
  }
  for (const int fd : temperatures_) {
    double millidegrees = 0;
    if (!absl::SimpleAtod(absl::StripAsciiWhitespace(ReadAgain(fd)), &millidegrees)) continue;
    if (millidegrees / 1000 < kHottestC) {
      state.temperature_c = std::max(state.temperature_c, millidegrees / 1000);
    }
  }
  const Past now{now_s, own_cpu_s, ParseCpuTimes(ReadAgain(stat_))};
  while (!past_.empty() && past_.front().now_s < now_s - kLongestS) past_.pop_front();
  const auto ticks_to_threads = [&](double ticks, const Past& since) {
    const double elapsed = static_cast<double>(now.times.total - since.times.total);
    return elapsed > 0 ? ticks / elapsed * now.times.cpus : 0;
  };
  if (!past_.empty() && past_.front().now_s <= now_s - kShortestS) {
    const Past& first = past_.front();
    const double others =
        ticks_to_threads(static_cast<double>(now.times.busy - first.times.busy), first) -
        (own_cpu_s - first.own_cpu_s) / (now_s - first.now_s);
    state.load = std::max(0.0, others);
  }
  // The most recent state that is old enough. The interval since then covers the timing of this
  // candidate.
  const Past* recent = nullptr;
  for (const Past& past : past_) {
    if (past.now_s <= now_s - kShortestS) recent = &past;
  }
  if (recent != nullptr && now.times.cpus > 0) {
    state.steal = std::max(
        0.0, ticks_to_threads(static_cast<double>(now.times.steal - recent->times.steal), *recent) /
                 now.times.cpus);
  }
  if (past_.empty() || past_.back().now_s <= now_s - kPastStepS) past_.push_back(now);
  return state;
}

}  // namespace hone::runner
