#include "tests/server/research/lab/small_set.h"

#include <cmath>
#include <map>
#include <string>

#include "common/target/target.h"
#include "gtest/gtest.h"
#include "server/research/lab/enumerate.h"
#include "server/tuner/space/design_space.h"
#include "tests/status.h"

namespace hone::lab {
namespace {

constexpr char kHead[] = R"(workload matmul
input A: f32[64, 64]
input B: f32[64, 64]
output C[i: 64, j: 64] = sum(k: 64) A[i, k] * B[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
x0 = sample_categorical(candidates=[1, 2, 4, 8])
x1 = sample_categorical(candidates=[4, 8, 16])
x2 = sample_categorical(candidates=[1, 2, 4, 8, 16, 32])
l3, l4 = split(l0, 0, x0)
l5, l6 = split(l1, 0, x1)
l7, l8 = split(l2, 0, x2)
)";
constexpr char kTails[][96] = {"reorder(l3, l5, l7, l8, l4, l6)\nvectorize(l6)\nparallel(l3)\n",
                               "reorder(l5, l3, l7, l8, l4, l6)\nvectorize(l6)\nparallel(l5)\n"};

}  // namespace

RecordedSet SmallSet() {
  RecordedSet set{.name = "small", .machine = "none", .recorded_unix_ms = 1};
  set.target = target::TargetByName("x86-avx2")->ToText();
  std::map<Digest, int> programs;
  for (const char* tail : kTails) {
    const int number = static_cast<int>(set.spaces.size());
    set.spaces.push_back(std::string(kHead) + tail);
    const auto space = space::DesignSpace::FromText(set.spaces.back());
    EXPECT_THAT(space, IsOk());
    const auto all = EnumerateCandidates(**space, 1000);
    EXPECT_THAT(all, IsOk());
    for (const Enumerated& each : *all) {
      const auto [program, fresh] =
          programs.emplace(each.program, static_cast<int>(programs.size()));
      set.candidates.push_back({number, each.decisions, program->second});
      if (!fresh) continue;
      const double away = std::abs(std::log2(each.decisions[0]) - 2) +
                          std::abs(std::log2(each.decisions[1]) - 4) +
                          std::abs(std::log2(each.decisions[2]) - 3);
      set.measurements.push_back({.latency_ns = 1000 * (1 + 0.2 * away + 0.05 * number),
                                  .dispersion = 0.01,
                                  .build_ms = 10,
                                  .run_ms = 5});
    }
  }
  set.measurements[7] = {.outcome = record::Outcome::kCrash, .build_ms = 10, .run_ms = 5};
  return set;
}

}  // namespace hone::lab
