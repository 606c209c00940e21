#ifndef HONE_TESTS_COMMON_SCHEDULE_SEED_RANGE_H_
#define HONE_TESTS_COMMON_SCHEDULE_SEED_RANGE_H_

#include <cstdint>
#include <string>

namespace hone::schedule {

// Seeds of a property test: `count` of them, from `first` on.
struct SeedRange {
  int64_t first = 1;
  int64_t count = 0;

  // HONE_SEED tells where the seeds begin, the variable `count_name` how many there are. Prints
  // them, so that a log tells what ran.
  static SeedRange FromEnvironment(const char* count_name, int64_t default_count);
  // One of `shards` consecutive parts; together they are the whole range.
  SeedRange Shard(int shard, int shards) const;

  int64_t end() const { return first + count; }
};

// How to run one seed again, for the message of a failure.
std::string RepeatHint(int64_t seed, const char* count_name);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_SEED_RANGE_H_
