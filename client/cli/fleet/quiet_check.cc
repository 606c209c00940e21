#include "client/cli/fleet/quiet_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/machine_load.h"

namespace hone::cli {
namespace {

using State = HealthCheck::State;

constexpr double kMuchSteal = 0.01;  // fraction of the time
constexpr int kMaxCores = 4096;
constexpr char kCpuFolder[] = "/sys/devices/system/cpu";

// Reads a one-line file, without surrounding blanks; "" if it cannot be read.
std::string Setting(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : "";
}

HealthCheck Governor(const std::string& root) {
  const std::string governor =
      Setting(absl::StrCat(root, kCpuFolder, "/cpu0/cpufreq/scaling_governor"));
  HealthCheck check{"governor", State::kOk, governor};
  if (governor.empty()) {
    check.finding = "not visible on this machine";
  } else if (governor != "performance") {
    check.state = State::kWarning;
    check.advice =
        "clocks change during measurements; as root: cpupower frequency-set -g performance";
    check.commands =
        "for governor in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do\n"
        "  echo performance > \"$governor\"\n"
        "done\n";
  }
  return check;
}

void AddTurbo(const std::string& root, std::vector<HealthCheck>& checks) {
  const std::string no_turbo = Setting(absl::StrCat(root, kCpuFolder, "/intel_pstate/no_turbo"));
  const std::string boost = Setting(absl::StrCat(root, kCpuFolder, "/cpufreq/boost"));
  if (no_turbo.empty() && boost.empty()) return;
  HealthCheck check{"turbo", State::kOk, "off"};
  if (no_turbo == "0" || boost == "1") {
    check.state = State::kWarning;
    check.finding = "on: clocks depend on the temperature and on the load of other cores";
    check.commands = no_turbo.empty() ? "echo 0 > /sys/devices/system/cpu/cpufreq/boost\n"
                                      : "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo\n";
    check.advice = absl::StrCat("as root: ", absl::StripAsciiWhitespace(check.commands));
  }
  checks.push_back(std::move(check));
}

void AddIsolation(const std::string& root, std::vector<HealthCheck>& checks) {
  const std::string path = absl::StrCat(root, kCpuFolder, "/isolated");
  if (!ReadFile(path).ok()) return;
  const std::string cores = Setting(path);
  HealthCheck check{"isolated cores", State::kOk, cores.empty() ? "none" : cores};
  if (cores.empty()) {
    check.advice =
        "for the least noise, boot with isolcpus=CORES nohz_full=CORES, and start the worker on "
        "these cores (taskset)";
  }
  checks.push_back(std::move(check));
}

// Parses a list of cores: "2-3,5".
std::set<int> CoresOfList(const std::string& list) {
  std::set<int> cores;
  for (absl::string_view range : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(range, '-');
    int first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last)) continue;
    for (int core = first; core <= std::min(last, kMaxCores); ++core) cores.insert(core);
  }
  return cores;
}

// Parses a mask of cores, "f,0000000c": the last hexadecimal digit stands for cores 0 to 3.
std::set<int> CoresOfMask(const std::string& mask) {
  std::set<int> cores;
  int core = 0;
  for (auto digit = mask.rbegin(); digit != mask.rend(); ++digit) {
    int bits = 0;
    if (!absl::SimpleHexAtoi(absl::string_view(&*digit, 1), &bits)) continue;
    for (int bit = 0; bit < 4; ++bit, ++core) {
      if ((bits >> bit & 1) != 0) cores.insert(core);
    }
  }
  return cores;
}

// Checks that interrupts do not go to isolated cores.
void AddInterrupts(const std::string& root, std::vector<HealthCheck>& checks) {
  const std::set<int> isolated = CoresOfList(Setting(absl::StrCat(root, kCpuFolder, "/isolated")));
  const std::string mask = Setting(root + "/proc/irq/default_smp_affinity");
  if (isolated.empty() || mask.empty()) return;
  std::set<int> both = CoresOfMask(mask);
  std::erase_if(both, [&](int core) { return !isolated.contains(core); });
  HealthCheck check{"interrupts", State::kOk, "do not go to the isolated cores"};
  if (!both.empty()) {
    check.state = State::kWarning;
    check.finding = absl::StrCat("may go to the isolated cores ", absl::StrJoin(both, ","));
    check.advice =
        "as root: write the mask of the other cores to /proc/irq/default_smp_affinity and to "
        "/proc/irq/*/smp_affinity, and stop irqbalance (or set IRQBALANCE_BANNED_CPULIST)";
    check.commands = "systemctl stop irqbalance\n";
  }
  checks.push_back(std::move(check));
}

// Checks the share of steal time since the machine was started.
void AddSteal(const std::string& root, std::vector<HealthCheck>& checks) {
  const std::string text = Setting(root + "/proc/stat");
  const absl::string_view line = absl::string_view(text).substr(0, text.find('\n'));
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  std::array<double, 8> ticks = {};
  if (words.size() <= ticks.size()) return;
  double used = 0;
  for (size_t i = 0; i < ticks.size(); ++i) {
    if (!absl::SimpleAtod(words[i + 1], &ticks[i])) return;
    const bool idle = i == 3 || i == 4;
    used += idle ? 0 : ticks[i];
  }
  const double share = used > 0 ? ticks[7] / used : 0;
  HealthCheck check{
      "steal", State::kOk,
      absl::StrFormat(
          "the host has taken %.1f %% of the requested CPU time since this machine was started",
          100 * share)};
  if (share > kMuchSteal) {
    check.state = State::kWarning;
    check.advice =
        "use a dedicated machine or dedicated cores; disturbed blocks are measured again, and "
        "records with much steal are quarantined";
  }
  checks.push_back(std::move(check));
}

void AddLoad(const std::string& root, std::vector<HealthCheck>& checks) {
  std::optional<MachineLoad> load = CheckLoad(root);
  if (!load.has_value()) return;
  checks.push_back({.name = "load",
                    .state = load->disturbs ? State::kWarning : State::kOk,
                    .finding = std::move(load->finding),
                    .advice = std::move(load->advice)});
}

void AddHugePages(const std::string& root, std::vector<HealthCheck>& checks) {
  const std::string enabled = Setting(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  if (enabled.empty()) return;
  HealthCheck check{"huge pages", State::kOk, enabled};
  if (absl::StrContains(enabled, "[never]")) {
    check.state = State::kWarning;
    check.advice =
        "buffers are on small pages, and TLB misses add noise; as root: echo madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled";
    check.commands = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\n";
  }
  checks.push_back(std::move(check));
}

}  // namespace

std::vector<HealthCheck> CheckQuiet(const std::string& root) {
  std::vector<HealthCheck> checks = {Governor(root)};
  AddTurbo(root, checks);
  AddIsolation(root, checks);
  AddInterrupts(root, checks);
  AddSteal(root, checks);
  AddLoad(root, checks);
  AddHugePages(root, checks);
  return checks;
}

std::string NoiseNow(const std::string& root) {
  const std::optional<MachineLoad> load = CheckLoad(root);
  if (!load.has_value() || !load->disturbs) return "";
  return absl::StrCat("the load of this machine is ", load->finding, ": ", load->advice);
}

std::string PrepareScript(const std::string& root) {
  std::string script = "#!/bin/sh\n# Run as root. The settings last until the next reboot.\n";
  bool trouble = false;
  for (const HealthCheck& check : CheckQuiet(root)) {
    if (check.state == State::kOk) continue;
    absl::StrAppend(&script, "\n# ", check.name, ": ", check.finding, "\n");
    // Steps without commands are also printed when the script runs, because it may be piped into a
    // shell without being read.
    absl::StrAppend(&script,
                    check.commands.empty()
                        ? absl::StrCat("# ", check.advice, "\necho '", check.name, ": ",
                                       absl::StrReplaceAll(check.advice, {{"'", ""}}), "' >&2\n")
                        : check.commands);
    trouble = true;
  }
  if (!trouble) script += "\n# There is nothing to do: no source of noise was found.\n";
  return script;
}

}  // namespace hone::cli
