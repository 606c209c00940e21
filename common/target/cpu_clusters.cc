#include "common/target/cpu_clusters.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/file.h"
#include "common/target/arm_cpu.h"
#include "common/target/caches.h"
#include "common/target/host.h"

namespace hone::target {
namespace {

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
