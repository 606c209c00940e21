// Compiled code agrees with the interpreter after any legal primitives.
//
// HONE_COMPILED_TRACES: number of traces over all shards. HONE_SEED: first seed.

#include <gtest/gtest.h>

#include "tests/worker/compile/trace_check.h"

namespace hone::codegen {
namespace {

constexpr char kCount[] = "HONE_COMPILED_TRACES";
constexpr int kShards = 4;
constexpr int64_t kTraces = 2000;

class CompiledRandomTraces : public testing::TestWithParam<int> {};

TEST_P(CompiledRandomTraces, MatchTheWorkload) {
  target::Target target = target::DetectHost();
  target.cores = 2;
  ExpectTracesMatch(
      schedule::SeedRange::FromEnvironment(kCount, kTraces).Shard(GetParam(), kShards), target,
      kCount);
}

INSTANTIATE_TEST_SUITE_P(Shards, CompiledRandomTraces, testing::Range(0, kShards));

}  // namespace
}  // namespace hone::codegen
