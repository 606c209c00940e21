#include "common/target/host.h"

#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/target/arm_cpu.h"
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

constexpr int kMostCpus = 1 << 16;

// "1024K" → 1048576; 0 if the text is not a size.
int64_t ParseSize(absl::string_view text) {
  int64_t unit = 1;
  if (absl::ConsumeSuffix(&text, "K")) unit = 1 << 10;
  if (absl::ConsumeSuffix(&text, "M")) unit = 1 << 20;
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) && value > 0 ? value * unit : 0;
}

std::string FolderOf(const std::string& root, int cpu, int index) {
  return absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu, "/cache/index", index, "/");
}

// Total size of the caches with this index that `cores` cores can use at the same time, one cache
// each. An index denotes the same kind of cache on every CPU of a machine.
int64_t SharedBytes(const std::string& root, const std::vector<int>& cpus, int cores, int index) {
  std::vector<int64_t> sizes;
  std::set<int> seen;
  for (const int cpu : cpus) {
    if (!seen.insert(cpu).second) continue;
    const std::string folder = FolderOf(root, cpu, index);
    for (const int other : ParseCpuList(FirstLine(folder + "shared_cpu_list"))) seen.insert(other);
    sizes.push_back(ParseSize(FirstLine(folder + "size")));
  }
  std::ranges::sort(sizes, std::ranges::greater());  // chiplets of one processor may differ
  int64_t bytes = 0;
  for (size_t i = 0; i < sizes.size() && i < static_cast<size_t>(cores); ++i) bytes += sizes[i];
  return bytes;
}

// Returns the number in a file, or 0 if the file has no number or cannot be read.
int64_t NumberIn(const std::string& path) {
  int64_t value = 0;
  return absl::SimpleAtoi(FirstLine(path), &value) ? value : 0;
}

// Names the kinds of cores of hybrid x86 processors, for which Linux has one folder each.
std::string HybridCore(const std::string& root, int cpu) {
  for (const char* const kind : {"core", "atom"}) {
    const std::vector<int> cpus =
        ParseCpuList(FirstLine(absl::StrCat(root, "/sys/devices/cpu_", kind, "/cpus")));
    if (std::ranges::count(cpus, cpu) > 0) return kind;
  }
  return "";
}

// "0-3,8".
std::string CpuListText(absl::Span<const int> cpus) {
  std::vector<std::string> ranges;
  for (size_t first = 0, end; first < cpus.size(); first = end) {
    end = first + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    ranges.push_back(end - first == 1 ? absl::StrCat(cpus[first])
                                      : absl::StrCat(cpus[first], "-", cpus[end - 1]));
  }
  return absl::StrJoin(ranges, ",");
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

std::vector<int> ParseCpuList(absl::string_view text) {
  std::vector<int> cpus;
  for (const absl::string_view range : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(range, '-');
    int first = 0, last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first || last >= kMostCpus) {
      return {};
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

void ReadCaches(const std::string& root, const std::vector<int>& cpus, Target& target) {
  if (cpus.empty()) return;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = FolderOf(root, cpus.front(), index);
    const std::string type = FirstLine(folder + "type");
    if (type.empty()) break;
    if (type == "Instruction") continue;
    const int64_t size = ParseSize(FirstLine(folder + "size"));
    const std::string level = FirstLine(folder + "level");
    if (size == 0) continue;
    if (level == "1") target.l1_bytes = size;
    if (level == "2") target.l2_bytes = size;
    if (level == "3") target.l3_bytes = SharedBytes(root, cpus, target.cores, index);
    int line = 0;
    if (absl::SimpleAtoi(FirstLine(folder + "coherency_line_size"), &line) && line >= 8) {
      target.cache_line_bytes = line;
    }
  }
}

int64_t ReachableL3Bytes(const Target& target) {
  constexpr int kMostSharers = 16;
  if (target.cores <= kMostSharers) return target.l3_bytes;
  return target.l3_bytes / target.cores * kMostSharers;
}

std::vector<CpuCluster> CpuClusters(const std::string& root, absl::Span<const int> cpus) {
  const absl::StatusOr<std::string> cpuinfo = ReadFile(absl::StrCat(root, "/proc/cpuinfo"));
  const bool is_arm = cpuinfo.ok() && !ArmCoreName(*cpuinfo).empty();
  std::vector<CpuCluster> clusters;
  std::vector<std::string> kinds;  // one per cluster
  for (const int cpu : cpus) {
    const std::string folder = absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu);
    const int64_t capacity = NumberIn(folder + "/cpu_capacity");
    std::string core = is_arm ? ArmCoreName(CpuInfoOf(*cpuinfo, {cpu})) : HybridCore(root, cpu);
    const std::string kind = absl::StrCat(core, " ", capacity);
    // The highest frequency may differ between cores of one kind, so it does not tell clusters
    // apart. It only orders them if Linux reports no capacity.
    const int64_t speed = capacity > 0 ? capacity : NumberIn(folder + "/cpufreq/cpuinfo_max_freq");
    const size_t c = std::ranges::find(kinds, kind) - kinds.begin();
    if (c == kinds.size()) {
      kinds.push_back(kind);
      clusters.push_back({.core = std::move(core)});
    }
    clusters[c].cpus.push_back(cpu);
    clusters[c].speed = std::max(clusters[c].speed, speed);
  }
  return clusters;
}

absl::StatusOr<CpuCluster> FindCluster(absl::Span<const CpuCluster> clusters,
                                       absl::string_view name) {
  const auto slower = [](const CpuCluster& a, const CpuCluster& b) { return a.speed < b.speed; };
  uint32_t position = 0;
  const bool is_number = absl::SimpleAtoi(name, &position);
  if (is_number && position < clusters.size()) return clusters[position];
  if (!is_number && !clusters.empty()) {
    const auto [little, big] = std::minmax_element(clusters.begin(), clusters.end(), slower);
    if (clusters.size() == 1 || little->speed < big->speed) {
      if (name == "big") return *big;
      if (name == "little") return *little;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no cluster '", name,
                                                 "'; the clusters of this machine are ",
                                                 DescribeClusters(clusters)));
}

std::string DescribeClusters(absl::Span<const CpuCluster> clusters) {
  std::vector<std::string> parts;
  for (size_t c = 0; c < clusters.size(); ++c) {
    parts.push_back(absl::StrCat(c, ": CPUs ", CpuListText(clusters[c].cpus),
                                 clusters[c].core.empty() ? "" : ", ", clusters[c].core));
  }
  return absl::StrJoin(parts, "; ");
}

absl::Status UseCpus(absl::Span<const int> cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) CPU_SET(cpu, &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot use only the CPUs ", CpuListText(cpus), ": ",
                                             ErrnoStatus(errno, "sched_setaffinity").message()));
}

}  // namespace hone::target
