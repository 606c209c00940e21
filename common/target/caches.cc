#include "common/target/caches.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/target/host.h"

namespace hone::target {
namespace {

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

}  // namespace

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

}  // namespace hone::target
