#ifndef HONE_TESTS_COMMON_SCHEDULE_SEED_RANGE_H_
#define HONE_TESTS_COMMON_SCHEDULE_SEED_RANGE_H_

#include <cstdint>
#include <string>

namespace hone::schedule {

// The seeds of a property test: `count` seeds starting with `first`.
struct SeedRange {
  int64_t first = 1;
  int64_t count = 0;

  // Reads the first seed from HONE_SEED and the count from the variable `count_name`, and prints
  // them to the log.
  static SeedRange FromEnvironment(const char* count_name, int64_t default_count);
  // One of `shards` consecutive parts of the range.
  SeedRange Shard(int shard, int shards) const;

  int64_t end() const { return first + count; }
};

// How to run a single seed again, for a failure message.
std::string RepeatHint(int64_t seed, const char* count_name);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_SEED_RANGE_H_
