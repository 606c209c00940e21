#ifndef HONE_COMMON_TARGET_CACHES_H_
#define HONE_COMMON_TARGET_CACHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::target {

// "0-3,8" → 0 1 2 3 8, as /sys lists CPUs; empty when it is no such list.
std::vector<int> ParseCpuList(absl::string_view text);

// Fills the caches and the line of a target from /sys, for a process that may run on `cpus` and
// keep `target.cores` of them busy. L1 and L2 are those of the first of the CPUs. L3 is what the
// cores have together: chiplets and sockets have one each, and no core fills more than one at a
// time. What cannot be read stays as it is. `root`: a folder that stands for /, in tests.
void ReadCaches(const std::string& root, const std::vector<int>& cpus, Target& target);

// Bytes of L3 that one core can fill. A target knows the sum over chiplets and sockets alone, and
// up to sixteen cores share one cache.
int64_t ReachableL3Bytes(const Target& target);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_CACHES_H_
