#ifndef HONE_COMMON_TARGET_CACHES_H_
#define HONE_COMMON_TARGET_CACHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::target {

// Parses a CPU list of /sys: "0-3,8" → 0 1 2 3 8. Empty if the text is not such a list.
std::vector<int> ParseCpuList(absl::string_view text);

// Reads a target's cache sizes and line size from /sys, for a process that may run on `cpus` and
// keep `target.cores` of them busy. L1 and L2 are those of the first CPU. L3 is the sum over the
// chiplets and sockets that the cores can use; one core can fill only one at a time. Values that
// cannot be read are left unchanged. `root` replaces / in tests.
void ReadCaches(const std::string& root, const std::vector<int>& cpus, Target& target);

// Bytes of L3 that one core can fill. Assumes that at most sixteen cores share a cache, because a
// target stores only the sum over chiplets and sockets.
int64_t ReachableL3Bytes(const Target& target);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_CACHES_H_
