#include "tests/server/tuner/search/spaces.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/operator/operator.h"
#include "common/schedule/trace.h"

namespace hone::search {
namespace {

[[noreturn]] void Die(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::abort();
}

constexpr absl::string_view kUntiled = R"(
b0 = block("C")
l0, l1, l2 = loops(b0)
parallel(l0)
)";

constexpr absl::string_view kTiled = R"(
b0 = block("C")
l0, l1, l2 = loops(b0)
x0, x1, x2 = sample_perfect_tile(l0, parts=3, max_inner=16)
x3, x4, x5 = sample_perfect_tile(l1, parts=3, max_inner=64)
x6, x7 = sample_perfect_tile(l2, parts=2, max_inner=64)
l3, l4, l5 = split(l0, x0, x1, x2)
l6, l7, l8 = split(l1, x3, x4, x5)
l9, l10 = split(l2, x6, x7)
reorder(l3, l6, l9, l4, l7, l10, l5, l8)
l11 = fuse(l3, l6)
parallel(l11)
unroll(l5)
vectorize(l8)
)";

// Register tiles that fit 32 registers, and some poor ones: 1×1, 4×1, 16×2 (spills).
constexpr absl::string_view kTileSites = R"(
x0, x1 = sample_register_tile(candidates=[1, 1, 4, 1, 6, 4, 8, 2, 8, 3, 12, 2, 14, 2, 16, 2])
x2 = sample_categorical(candidates=[1, 2, 4])
x3, x4 = sample_tile(l1, parts=2, max_inner=0)
x5, x6 = sample_tile(l2, parts=2, max_inner=0)
x7, x8 = sample_tile(l0, parts=2, max_inner=0)
l3, l4 = split(l1, x3, x4)
l5, l6 = split(l2, x5, x6)
l7, l8 = split(l0, x7, x8)
)";

}  // namespace

TestSpaces::TestSpaces(int64_t size)
    : TestSpaces("matmul",
                 {absl::StrCat("m=", size), absl::StrCat("n=", size), absl::StrCat("k=", size)}) {}

TestSpaces::TestSpaces(absl::string_view op, const std::vector<std::string>& words) {
  absl::StatusOr<ir::Workload> workload = op::BuildWorkload(op, words);
  if (!workload.ok()) Die(workload.status());
  workload_ = std::make_shared<const ir::Workload>(*std::move(workload));
}

void TestSpaces::Add(std::string name, absl::string_view instructions) {
  absl::StatusOr<schedule::ParsedTrace> parsed = schedule::ParseTrace(instructions);
  if (!parsed.ok()) Die(parsed.status());
  auto space = space::DesignSpace::Create(std::move(name), workload_, std::move(parsed->trace));
  if (!space.ok()) Die(space.status());
  spaces_.push_back(*std::move(space));
}

SearchContext TestSpaces::Context(uint64_t seed) const {
  SearchContext context{.target = *target::TargetByName("x86-avx512"), .seed = seed};
  context.target.cores = 2;
  for (const auto& space : spaces_) context.spaces.push_back(space.get());
  return context;
}

const space::DesignSpace& TestSpaces::SpaceOf(const record::Candidate& candidate) const {
  for (const auto& space : spaces_) {
    if (space->digest() == candidate.space_digest) return *space;
  }
  Die(absl::NotFoundError("a candidate of no space"));
}

TestSpaces MatmulSpaces(int64_t size) {
  TestSpaces spaces(size);
  spaces.Add("untiled", kUntiled);
  spaces.Add("tiled", kTiled);
  const std::string head = absl::StrCat("b0 = block(\"C\")\nl0, l1, l2 = loops(b0)", kTileSites);
  spaces.Add("packed", absl::StrCat(head, R"(
reorder(l3, l5, l7, l8, l4, l6)
b1 = cache_read(b0, "B", "global")
compute_at(b1, l5)
transform_layout(b1, "k, j -> j / 32, k, j % 32")
b2 = cache_read(b0, "A", "global")
compute_at(b2, l7)
transform_layout(b2, "i, k -> i / $0, k, i % $0", x0)
l9, l10, l11 = register_tile(b0, l8, l4, l6, x0, x1, 16, x2)
parallel(l3)
)"));
  spaces.Add("strided", absl::StrCat(head, R"(
reorder(l3, l7, l5, l8, l4, l6)
l9, l10, l11 = register_tile(b0, l8, l4, l6, x0, x1, 16, x2)
l12 = fuse(l3, l7)
parallel(l12)
)"));
  return spaces;
}

TestSpaces TinySpace(int choices) {
  TestSpaces spaces(64);
  std::string rows;
  for (int i = 1; i <= choices; ++i) absl::StrAppend(&rows, i > 1 ? ", " : "", i);
  spaces.Add("tiny",
             absl::StrCat(
                 "b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nx0 = sample_categorical(candidates=[",
                 rows, "])\nl3, l4 = split(l0, 0, x0)\n"));
  return spaces;
}

}  // namespace hone::search
