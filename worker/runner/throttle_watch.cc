#include "worker/runner/throttle_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/target/host.h"

namespace hone::runner {
namespace {

constexpr double kCoolerC = 3;
constexpr double kHottestC = 150;  // missing sensors report arbitrary values
constexpr absl::Duration kStep = absl::Milliseconds(500);
constexpr char kFirmware[] = "/sys/devices/platform/soc/soc:firmware/get_throttled";
// The firmware's flags for the current state. The higher bits are for everything since boot.
constexpr uint32_t kUnderVoltage = 1 << 0, kCapped = 1 << 1, kThrottled = 1 << 2,
                   kSoftLimit = 1 << 3;

int Open(const std::string& path) { return open(path.c_str(), O_RDONLY | O_CLOEXEC); }

std::string ReadAgain(int fd) {
  std::array<char, 64> buffer;
  const ssize_t size = fd < 0 ? 0 : pread(fd, buffer.data(), buffer.size(), 0);
  return std::string(
      absl::StripAsciiWhitespace(absl::string_view(buffer.data(), std::max<ssize_t>(size, 0))));
}

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

ThrottleWatch::ThrottleWatch(const std::string& root) {
  std::error_code error;
  std::vector<std::string> entries;
  for (const auto& entry :
       std::filesystem::directory_iterator(root + "/sys/class/thermal", error)) {
    entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  for (const std::string& entry : entries) {
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
