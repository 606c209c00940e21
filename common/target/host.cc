#include "common/target/host.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/target/target.h"

namespace hone::target {
namespace {

// The value of the first line of /proc/cpuinfo that begins with `key`.
std::string CpuInfo(absl::string_view key) {
  const absl::StatusOr<std::string> content = ReadFile("/proc/cpuinfo");
  if (!content.ok()) return "";
  for (const absl::string_view line : absl::StrSplit(*content, '\n')) {
    const size_t colon = line.find(':');
    if (absl::StartsWith(line, key) && colon != absl::string_view::npos) {
      return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    }
  }
  return "";
}

}  // namespace

std::string FirstLine(const std::string& path) {
  const absl::StatusOr<std::string> content = ReadFile(path);
  if (!content.ok()) return "";
  return std::string(absl::StripAsciiWhitespace(content->substr(0, content->find('\n'))));
}

std::string FrequencyFolder(const std::string& root) {
  const std::vector<int> cpus = UsableCpus();
  return absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpus.empty() ? 0 : cpus.front(),
                      "/cpufreq");
}

bool IsEmulated() {
#if defined(__x86_64__)
  return !CpuInfo("CPU implementer").empty();
#else
  return !CpuInfo("vendor_id").empty();
#endif
}

HostFacts DescribeHost() {
  HostFacts facts;
  utsname names;
  if (uname(&names) == 0) {
    facts.name = names.nodename;
    facts.os = absl::StrCat(names.sysname, " ", names.release);
  }
  facts.cpu = CpuInfo("model name");
  const Target target = DetectHost();
  if (facts.cpu.empty()) facts.cpu = target.cpu;
  if (IsEmulated()) facts.cpu = absl::StrCat(target.arch, " ", target.cpu, ", emulated");
  facts.isa = absl::StrJoin(target.features, " ");
  facts.governor = FirstLine(FrequencyFolder() + "/scaling_governor");
  if (facts.governor.empty()) facts.governor = "unknown";
  facts.cores = target.cores;
  struct sysinfo memory;
  if (sysinfo(&memory) == 0) {
    facts.memory_bytes = static_cast<int64_t>(memory.totalram) * memory.mem_unit;
  }
  return facts;
}

}  // namespace hone::target
