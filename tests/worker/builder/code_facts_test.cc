#include "worker/builder/code_facts.h"

#include <gtest/gtest.h>

#include "common/base/file.h"

namespace hone::builder {
namespace {

target::Target Avx2() { return target::TargetByName("x86-avx2").value(); }

TEST(CodeFactsTest, TheHotLoopIsTheInnermostWithTheMostMultiplyAdds) {
  const CodeFacts facts = ReadCodeFacts(ReadFile(HOT_LOOP_OBJECT).value(), Avx2());
  EXPECT_GT(facts.code_bytes, 20);
  EXPECT_LT(facts.code_bytes, 200);
  EXPECT_EQ(facts.spills, 0);
  EXPECT_DOUBLE_EQ(facts.loads_per_fma, 2.0 / 4);
}

TEST(CodeFactsTest, ReloadsFromTheStackAreSpills) {
  const CodeFacts facts = ReadCodeFacts(ReadFile(SPILLING_OBJECT).value(), Avx2());
  EXPECT_EQ(facts.spills, 2);
  EXPECT_DOUBLE_EQ(facts.loads_per_fma, 2.0 / 2);
}

TEST(CodeFactsTest, DamagedObjectsHaveNoFacts) {
  EXPECT_EQ(ReadCodeFacts("no object", Avx2()).code_bytes, 0);
  std::string damaged = ReadFile(HOT_LOOP_OBJECT).value();
  damaged.resize(damaged.size() / 2);
  ReadCodeFacts(damaged, Avx2());  // does not crash
  target::Target unknown = Avx2();
  unknown.triple = "pdp11-unknown-none";
  EXPECT_EQ(ReadCodeFacts(ReadFile(HOT_LOOP_OBJECT).value(), unknown).loads_per_fma, 0);
}

}  // namespace
}  // namespace hone::builder
