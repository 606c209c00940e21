#include "tests/common/schedule/seed_range.h"

#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"

namespace hone::schedule {
namespace {

int64_t FromEnvironmentOr(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : fallback;
}

}  // namespace

SeedRange SeedRange::FromEnvironment(const char* count_name, int64_t default_count) {
  const SeedRange range{FromEnvironmentOr("HONE_SEED", 1),
                        FromEnvironmentOr(count_name, default_count)};
  std::cout << "seeds " << range.first << " to " << range.end() - 1 << " (HONE_SEED, " << count_name
            << " choose others)\n";
  return range;
}

SeedRange SeedRange::Shard(int shard, int shards) const {
  const int64_t begin = count * shard / shards, end = count * (shard + 1) / shards;
  return {first + begin, end - begin};
}

std::string RepeatHint(int64_t seed, const char* count_name) {
  return absl::StrCat("repeat with HONE_SEED=", seed, " ", count_name, "=1");
}

}  // namespace hone::schedule
