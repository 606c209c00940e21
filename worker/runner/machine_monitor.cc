#include "worker/runner/machine_monitor.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

std::string ReadAgain(int fd) {
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

constexpr double kCoolerC = 3;
constexpr absl::Duration kStep = absl::Milliseconds(500);
constexpr char kFirmware[] = "/sys/devices/platform/soc/soc:firmware/get_throttled";
// The firmware's flags for the current state. The higher bits are for everything since boot.
constexpr uint32_t kUnderVoltage = 1 << 0, kCapped = 1 << 1, kThrottled = 1 << 2,
                   kSoftLimit = 1 << 3;

// Returns the lowest temperature at which the system starts to lower clocks; infinite if there is
// none.
double PassiveTrip(const std::string& zone) {
  double lowest_c = std::numeric_limits<double>::infinity();
  for (int trip = 0;; ++trip) {
    const std::string name = absl::StrCat(zone, "/trip_point_", trip);
    const std::string type = target::FirstLine(name + "_type");
    if (type.empty()) return lowest_c;
    double millidegrees = 0;
    if (type == "passive" && absl::SimpleAtod(target::FirstLine(name + "_temp"), &millidegrees)) {
      lowest_c = std::min(lowest_c, millidegrees / 1000);
    }
  }
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

record::MachineState MachineMonitor::Look() {
  return Look(Seconds(CLOCK_MONOTONIC), Seconds(CLOCK_PROCESS_CPUTIME_ID));
}

record::MachineState MachineMonitor::Look(double now_s, double own_cpu_s) {
  record::MachineState state;
  double kilohertz = 0;
  if (absl::SimpleAtod(ReadAgain(frequency_), &kilohertz)) {
    state.frequency_mhz = kilohertz / 1000;
  } else {
    state.frequency_mhz = ParseMegahertz(ReadAgain(cpuinfo_));
  }
  for (const int fd : temperatures_) {
    double millidegrees = 0;
    if (!absl::SimpleAtod(ReadAgain(fd), &millidegrees)) continue;
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

ThrottleWatch::ThrottleWatch(const std::string& root) {
  for (const std::string& entry : FilesIn(root + "/sys/class/thermal")) {
    const std::string name = std::filesystem::path(entry).filename();
    if (absl::StartsWith(name, "thermal_zone")) {
      const double limit_c = PassiveTrip(entry);
      const int fd = limit_c < kHottestC ? Open(entry + "/temp") : -1;
      if (fd >= 0) zones_.push_back({.fd = fd, .limit_c = limit_c});
    } else if (absl::StartsWith(name, "cooling_device")) {
      const std::string type = target::FirstLine(entry + "/type");
      if (type != "Processor" && !absl::StrContains(type, "cpufreq")) continue;
      if (const int fd = Open(entry + "/cur_state"); fd >= 0) cooling_.push_back(fd);
    }
  }
  firmware_ = Open(root + kFirmware);
}

ThrottleWatch::~ThrottleWatch() {
  for (const Zone& zone : zones_) close(zone.fd);
  for (const int fd : cooling_) close(fd);
  if (firmware_ >= 0) close(firmware_);
}

int ThrottleWatch::sources() const {
  return static_cast<int>(zones_.size() + cooling_.size()) + (firmware_ >= 0 ? 1 : 0);
}

std::string ThrottleWatch::Reason() {
  std::string reason;
  for (Zone& zone : zones_) {
    double millidegrees = 0;
    if (!absl::SimpleAtod(ReadAgain(zone.fd), &millidegrees)) continue;
    const double now_c = millidegrees / 1000;
    if (now_c >= kHottestC) continue;
    zone.hot = now_c >= zone.limit_c - (zone.hot ? kCoolerC : 0);
    if (zone.hot && reason.empty()) {
      reason = absl::StrFormat("the processor is at %.0f °C, and slows down above %.0f °C", now_c,
                               zone.limit_c);
    }
  }
  uint32_t flags = 0;
  if (absl::SimpleHexAtoi(ReadAgain(firmware_), &flags)) {
    if ((flags & kUnderVoltage) != 0) return "the supply voltage is too low";
    if (reason.empty() && (flags & (kCapped | kThrottled | kSoftLimit)) != 0) {
      reason = "the firmware limits the clock";
    }
  }
  for (const int fd : cooling_) {
    int state = 0;
    if (reason.empty() && absl::SimpleAtoi(ReadAgain(fd), &state) && state > 0) {
      reason = "the system lowers the clock to cool the processor";
    }
  }
  return reason;
}

std::string PauseWhileThrottled(ThrottleWatch& watch, absl::Duration limit,
                                absl::FunctionRef<void(absl::Duration)> sleep) {
  const std::string first = watch.Reason();
  std::string now = first;
  for (absl::Duration waited; !now.empty() && waited < limit; waited += kStep) {
    sleep(kStep);
    now = watch.Reason();
  }
  return first;
}

}  // namespace hone::runner
