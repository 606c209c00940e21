#include "worker/runner/conditions.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/target/host.h"
#include "worker/runner/machine_monitor.h"
#include "worker/sandbox/guards.h"
#include "worker/sandbox/sandbox.h"

namespace hone::runner {
namespace {

Condition Emulation() {
  if (!target::IsEmulated()) return {"processor", true, "runs this program itself", ""};
  return {"processor", false,
          "an emulator runs this program on a processor of another architecture",
          "results are checked, but times mean nothing: never compare or publish them"};
}

Condition SystemCalls() {
  if (sandbox::HasSystemCallFilters())
    return {"seccomp", true, "kernels cannot leave their process", ""};
  return {"seccomp", false, "this system cannot filter system calls",
          "a kernel can do whatever this user can: use a user of its own and trusted clients; "
          "hone-worker runs kernels only with --unconfined"};
}

Condition Files() {
  if (const long version = sandbox::FileGuardVersion(); version > 0) {
    return {"Landlock", true, absl::StrCat("version ", version, " guards files"), ""};
  }
  return {"Landlock", false, "this system is older than Linux 5.13, or has Landlock switched off",
          "kernels can read and write the files of this user: use a user of its own and trusted "
          "clients; hone-worker starts only with --allow-unguarded-files"};
}

Condition Governor(const std::string& root) {
  const std::string folder = target::FrequencyFolder(root);
  const std::string governor = target::FirstLine(folder + "/scaling_governor");
  if (governor.empty()) {
    return {"clock rate", true, "not visible on this machine", ""};
  }
  Condition condition{"clock rate", governor == "performance",
                      absl::StrCat("governor ", governor, ", at most ",
                                   target::FirstLine(folder + "/scaling_max_freq"), " kHz"),
                      ""};
  if (!condition.ok) {
    condition.advice =
        "as root: echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
  }
  return condition;
}

Condition Throttling(const std::string& root) {
  ThrottleWatch watch(root);
  if (watch.sources() == 0) {
    return {"throttling", true, "not visible on this machine; only the reference loops show it",
            ""};
  }
  const std::string reason = watch.Reason();
  if (reason.empty()) return {"throttling", true, "none", ""};
  return {"throttling", false, reason,
          "measurements pause until this ends: add a fan or a heat sink, or a stronger supply, or "
          "lower scaling_max_freq"};
}

Condition Clock() {
  // A board without a battery starts at the beginning of 1970, or at the date of its image.
  const absl::CivilDay first(2024, 1, 1);
  const absl::Time now = absl::Now();
  if (absl::ToCivilDay(now, absl::UTCTimeZone()) >= first) {
    return {"date", true, absl::FormatTime("%Y-%m-%d %H:%M UTC", now, absl::UTCTimeZone()), ""};
  }
  return {"date", false, absl::FormatTime("%Y-%m-%d", now, absl::UTCTimeZone()),
          "certificates look as if they were not valid yet; set the date, or enable NTP"};
}

}  // namespace

std::vector<Condition> DescribeConditions(const std::string& root) {
  return {Emulation(), SystemCalls(), Files(), Governor(root), Throttling(root), Clock()};
}

std::string ToJson(const std::vector<Condition>& conditions) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Condition& condition : conditions) {
    list.push_back({{"name", condition.name},
                    {"ok", condition.ok},
                    {"finding", condition.finding},
                    {"advice", condition.advice}});
  }
  return nlohmann::ordered_json{{"conditions", std::move(list)}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace hone::runner
