// AutoTVM's templates: the operators that they apply to, that every candidate computes the
// workload, and how many candidates are invalid or duplicates.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "server/research/template/builder.h"
#include "server/research/template/template.h"
#include "server/tuner/space/maker.h"
#include "tests/common/schedule/tolerance_needed.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tolerance that allows F(2, 3), whose results on small integers are exact.
constexpr double kTolerance = 1e-5;

std::vector<std::unique_ptr<DesignSpace>> Make(absl::string_view text, const target::Target& target,
                                               double tolerance = kTolerance) {
  auto spaces = MakeSpaces(
      {.workload = MakeWorkload(text), .target = &target, .generation = {.tolerance = tolerance}},
      "templates");
  EXPECT_THAT(spaces, IsOk()) << text;
  return spaces.ok() ? *std::move(spaces) : std::vector<std::unique_ptr<DesignSpace>>();
}

std::vector<std::string> NamesOf(const std::vector<std::unique_ptr<DesignSpace>>& spaces) {
  std::vector<std::string> names;
  for (const auto& space : spaces) names.push_back(space->name());
  return names;
}

// Odd and prime sizes, sizes of one, sizes smaller than a vector, and workloads with later stages.
const char* const kSmallTemplates[] = {
    "matmul m=1 n=1 k=1",
    "matmul m=17 n=13 k=7",
    "matmul m=24 n=40 k=12",
    "matmul m=1 n=40 k=9",
    "matmul m=40 n=1 k=9",
    "dense m=12 n=37 k=8",
    "dense_relu m=36 n=128 k=5",
    kTransposedWeights,
    kTwoStagesAfterSum,
    "conv2d n=2 h=5 w=9 ci=3 co=37 k=3 s=1 p=1",
    "conv2d n=1 h=9 w=9 ci=4 co=33 k=3 s=2 p=1",
    "conv2d n=1 h=8 w=8 ci=8 co=16 k=1 s=1 p=0",
    "conv2d n=1 h=6 w=11 ci=3 co=20 k=5 s=2 p=2",
    "conv2d n=1 h=8 w=8 ci=6 co=24 k=3 s=1 p=0",
    "conv2d n=1 h=8 w=8 ci=1 co=24 k=3 s=1 p=1",
    "conv2d_bn_relu n=1 h=6 w=6 ci=5 co=18 k=3 s=1 p=1",
    "depthwise_conv2d n=1 h=8 w=9 c=20 k=3 s=1 p=1",
    "depthwise_conv2d n=2 h=7 w=7 c=40 k=3 s=2 p=1",
    "batch_matmul b=3 m=10 n=37 k=11",
    "transpose_batch_matmul b=2 s=10 h=3 d=16",
    "workload batch_dense\n"
    "input A: f32[2, 9, 12]\n"
    "input B: f32[2, 40, 12] constant\n"
    "C[b: 2, i: 9, j: 40] = sum(k: 12) A[b, i, k] * B[b, j, k]\n"
    "output D[b: 2, i: 9, j: 40] = max(C[b, i, j], 0.0)\n",
    "conv2d n=1 h=7 w=7 ci=8 co=32 k=3 s=1 p=1 groups=4",
    "conv2d n=2 h=8 w=6 ci=12 co=40 k=3 s=2 p=1 groups=2",
    "conv2d_bn_relu n=1 h=6 w=6 ci=6 co=36 k=3 s=1 p=1 groups=2",
    "conv2d_nchw n=1 h=8 w=9 ci=6 co=10 k=3 s=1 p=1",
    "conv2d_nchw n=2 h=9 w=20 ci=3 co=17 k=3 s=2 p=1",
    "conv2d_nchw n=1 h=5 w=5 ci=8 co=16 k=1 s=1 p=0",
};

class SmallTemplate : public testing::TestWithParam<const char*> {};

TEST_P(SmallTemplate, EveryCandidateComputesTheWorkload) {
  constexpr int kCandidates = 12;
  for (const target::Target& target : {Avx512(), Avx2()}) {
    const auto workload = MakeWorkload(GetParam());
    const std::vector<ir::Values> inputs = SmallIntegers(*workload, 3);
    const std::vector<ir::Values> wanted = ir::Interpret(*workload, inputs).value();
    for (const auto& space : Make(GetParam(), target)) {
      for (uint64_t i = 0; i < kCandidates; ++i) {
        Rng rng(11, i);
        const auto drawn = space->Sample(rng);
        ASSERT_THAT(drawn, IsOk()) << space->name();
        const auto program = space->Replay(*drawn);
        if (!program.ok()) continue;  // NoCandidateIsInvalid counts these
        const auto computed = ir::Interpret(*program, inputs);
        ASSERT_THAT(computed, IsOk()) << program->ToText();
        ASSERT_EQ(*computed, wanted)
            << schedule::TraceFileText(*space->workload(), space->trace(), *drawn)
            << program->ToText();
      }
    }
  }
}

TEST_P(SmallTemplate, NoCandidateIsInvalid) {
  constexpr int kCandidates = 100;
  for (const auto& space : Make(GetParam(), Avx512())) {
    for (uint64_t i = 0; i < kCandidates; ++i) {
      Rng rng(13, i);
      const auto drawn = space->Sample(rng);
      ASSERT_THAT(drawn, IsOk()) << space->name();
      EXPECT_TRUE(space->IsLegal(*drawn)) << space->name();
      const auto program = space->Replay(*drawn);
      EXPECT_THAT(program, IsOk()) << space->name();
    }
  }
}

std::string TemplateNameOf(const testing::TestParamInfo<const char*>& info) {
  std::string name = absl::StrCat(info.index, "_");
  for (char c : std::string(info.param).substr(0, 40)) {
    if (c == '\n') break;
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, SmallTemplate, testing::ValuesIn(kSmallTemplates), TemplateNameOf);

class LargeTemplate : public testing::TestWithParam<const char*> {};

TEST_P(LargeTemplate, CandidatesAreValidAndDiffer) {
  constexpr int kCandidates = 200;
  for (const auto& space : Make(GetParam(), Avx512(), 1e-3)) {
    std::set<std::vector<int64_t>> vectors;
    std::set<Digest> programs;
    int invalid = 0, repeated = 0;
    absl::Status last;
    for (uint64_t i = 0; i < kCandidates; ++i) {
      Rng rng(17, i);
      const auto drawn = space->Sample(rng);
      ASSERT_THAT(drawn, IsOk()) << space->name();
      if (!vectors.insert(*drawn).second) continue;  // strategies propose a vector only once
      const auto program = space->Replay(*drawn);
      if (!program.ok()) {
        ++invalid;
        last = program.status();
      } else {
        repeated += !programs.insert(program->StructuralDigest()).second;
      }
    }
    const auto tried = static_cast<int>(vectors.size());
    EXPECT_GE(tried, kCandidates / 4) << space->name();
    EXPECT_LE(invalid * 50, tried) << space->name() << ": " << last;
    EXPECT_LE(repeated * 100, tried) << space->name();
    RecordProperty(space->name() + "_invalid", invalid);
    RecordProperty(space->name() + "_repeated", repeated);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LargeTemplate,
                         testing::Values("matmul m=1024 n=1024 k=1024",
                                         "matmul m=1009 n=997 k=1013", "dense m=128 n=3072 k=768",
                                         "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
                                         "conv2d n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1",
                                         "conv2d n=1 h=224 w=224 ci=3 co=64 k=7 s=2 p=3",
                                         "conv2d_bn_relu n=1 h=28 w=28 ci=128 co=128 k=3 s=1 p=1",
                                         "batch_matmul b=12 m=128 n=128 k=64",
                                         "transpose_batch_matmul b=1 s=128 h=12 d=64",
                                         "conv2d n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1 groups=4",
                                         "conv2d_nchw n=1 h=28 w=28 ci=128 co=128 k=3 s=1 p=1",
                                         "depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1",
                                         "depthwise_conv2d n=1 h=7 w=7 c=1024 k=3 s=1 p=1"),
                         TemplateNameOf);

TEST(Templates, EachOperatorHasItsOwn) {
  EXPECT_THAT(NamesOf(Make("matmul m=64 n=64 k=64", Avx512())),
              ElementsAre("matmul", "matmul_packed"));
  EXPECT_THAT(NamesOf(Make("dense m=64 n=64 k=64", Avx512())), ElementsAre("dense_packed"));
  const char* const kConv = "conv2d n=1 h=14 w=14 ci=64 co=64 k=3 s=1 p=1";
  EXPECT_THAT(NamesOf(Make(kConv, Avx512(), 0)), ElementsAre("conv2d_direct", "conv2d_packed"));
  EXPECT_THAT(NamesOf(Make(kConv, Avx512(), 1e-3)),
              ElementsAre("conv2d_direct", "conv2d_packed", "conv2d_winograd2", "conv2d_winograd4",
                          "conv2d_winograd6"));
  EXPECT_THAT(NamesOf(Make("conv2d n=1 h=14 w=14 ci=1 co=64 k=3 s=1 p=1", Avx512(), 1e-3)),
              ElementsAre("conv2d_direct", "conv2d_packed", "conv2d_winograd2", "conv2d_winograd4",
                          "conv2d_winograd6"));
  EXPECT_THAT(NamesOf(Make("conv2d n=1 h=14 w=14 ci=64 co=64 k=3 s=2 p=1", Avx512(), 1e-3)),
              ElementsAre("conv2d_direct", "conv2d_packed"));
  EXPECT_THAT(NamesOf(Make("batch_matmul b=4 m=64 n=64 k=64", Avx512())),
              ElementsAre("batch_matmul", "batch_matmul_packed"));
  EXPECT_THAT(NamesOf(Make("conv2d n=1 h=14 w=14 ci=64 co=64 k=3 p=1 groups=4", Avx512(), 1e-3)),
              ElementsAre("conv2d_grouped"));
  EXPECT_THAT(NamesOf(Make("conv2d_nchw n=1 h=14 w=14 ci=64 co=64 k=3 p=1", Avx512(), 1e-3)),
              ElementsAre("conv2d_nchw"));
  EXPECT_THAT(NamesOf(Make("depthwise_conv2d n=1 h=14 w=14 c=64 k=3 p=1", Avx512())),
              ElementsAre("depthwise_conv2d"));
}

TEST(Templates, WinogradNeedsNoMoreThanTheTolerance) {
  for (const auto& space : Make("conv2d n=1 h=14 w=14 ci=64 co=64 k=3 s=1 p=1", Avx512(), 7e-5)) {
    Rng rng(1);
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto needed,
        schedule::ToleranceNeeded(*space->workload(), space->trace(), space->Sample(rng).value()));
    EXPECT_LE(needed, 7e-5) << space->name();
  }
}

TEST(Templates, MissingTemplateListsSupportedOperators) {
  for (const char* text : {"softmax m=8 n=8", "conv1d n=1 l=8 ci=8 co=8 k=3 p=1",
                           "conv2d_nchw n=1 h=8 w=8 ci=8 co=8 k=3 p=1 groups=2", "add m=4 n=4",
                           "workload half\ninput A: f32[8, 8]\ninput B: f32[8, 16] constant\n"
                           "C[i: 8, j: 16] = sum(k: 8) A[i, k] * B[k, j]\n"
                           "output D[i: 8, j: 16] = (C[i, j] where j < 8 else 0.0)\n"}) {
    EXPECT_THAT(CheckSpaceArgument(*MakeWorkload(text), "templates"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("there are templates for matmul, dense, batch_matmul, conv2d")))
        << text;
  }
}

TEST(Makers, UnknownNameListsTheKnownOnes) {
  EXPECT_THAT(
      CheckSpaceArgument(*MakeWorkload("matmul m=8 n=8 k=8"), "sketches"),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr("there is no 'sketches'; there are: rules, templates, ansor, and the text of a "
                    "trace file (trace:FILE on the command line)")));
  for (const SpaceMaker& maker : SpaceMakers()) {
    EXPECT_THAT(CheckSpaceArgument(*MakeWorkload("matmul m=8 n=8 k=8"), maker.name), IsOk());
  }
}

TEST(Makers, RulesAreTheDefault) {
  const target::Target target = Avx512();
  const SpaceRequest request{.workload = MakeWorkload("matmul m=64 n=64 k=64"), .target = &target};
  const auto by_default = MakeSpaces(request, ""), by_name = MakeSpaces(request, "rules");
  ASSERT_THAT(by_default, IsOk());
  ASSERT_THAT(by_name, IsOk());
  EXPECT_EQ(NamesOf(*by_default), NamesOf(*by_name));
}

TEST(Makers, F64NeedsADeviceThatHasIt) {
  const auto workload =
      MakeWorkload("workload w\ninput A: f32[64]\noutput B[i: 64] = f32(f64(A[i]) * 2.0)\n");
  target::Target target = *target::TargetByName("generic/opencl");
  const SpaceRequest request{.workload = workload, .target = &target};
  for (const std::string& space : {std::string(), workload->ToText() + "trace 1\n"}) {
    target.features = {};
    EXPECT_THAT(MakeSpaces(request, space),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::AllOf(HasSubstr("workload w computes in f64"),
                                        HasSubstr(target.Key()), HasSubstr("use f32"))));
    target.features = {"fp64"};
    EXPECT_THAT(MakeSpaces(request, space), IsOk());
  }
}

// The schedule entities on a matmul of 24 by 32 by 12.
class Entities : public testing::Test {
 protected:
  Entities() : workload_(MakeWorkload("matmul m=24 n=32 k=12")) {
    loops_ = builder_.Loops(builder_.Block("C"), {24, 32, 12});
  }
  std::set<std::vector<int64_t>> All() {
    auto space = std::move(builder_).Finish("entities", workload_);
    EXPECT_THAT(space, IsOk());
    std::set<std::vector<int64_t>> drawn;
    for (uint64_t i = 0; i < 3000; ++i) {
      Rng rng(5, i);
      drawn.insert((*space)->Sample(rng).value());
      EXPECT_THAT((*space)->Replay((*space)->Sample(rng).value()), IsOk());
    }
    return drawn;
  }

  std::shared_ptr<const ir::Workload> workload_;
  TemplateBuilder builder_;
  std::vector<KnobLoop> loops_;
};

TEST_F(Entities, SplitByFactors) {
  builder_.DefineSplit(loops_[2], /*max_innermost=*/4);
  EXPECT_THAT(All(), ElementsAre(std::vector<int64_t>{3, 4}, std::vector<int64_t>{4, 3},
                                 std::vector<int64_t>{6, 2}, std::vector<int64_t>{12, 1}));
}

TEST_F(Entities, AnExtentWithFewFactorsIsSplitByAnySize) {
  workload_ = MakeWorkload("matmul m=24 n=32 k=13");
  builder_ = TemplateBuilder();
  loops_ = builder_.Loops(builder_.Block("C"), {24, 32, 13});
  builder_.DefineSplit(loops_[2], /*max_innermost=*/5);
  std::set<int64_t> inner;
  for (const auto& decisions : All()) inner.insert(decisions[1]);
  EXPECT_THAT(inner, ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(Entities, FilterAppliesToSeveralKnobs) {
  const auto y = builder_.DefineSplit(loops_[0]);
  const auto x = builder_.DefineSplit(loops_[1]);
  builder_.AddFilter("tile", {y[1], x[1]},
                     [](absl::Span<const int64_t> e) { return e[0] * e[1] == 32; });
  const auto all = All();
  EXPECT_EQ(all.size(), 4u);  // 1·32, 2·16, 4·8, 8·4
  for (const auto& d : all) EXPECT_EQ(d[1] * d[3], 32);
}

TEST_F(Entities, EquivalentOrdersAreDrawnOnce) {
  const auto y = builder_.DefineSplit(loops_[0]);
  builder_.DefineReorder({y[0], y[1], loops_[1], loops_[2]},
                         {{0, 1, 2, 3}, {0, 2, 1, 3}, {1, 2, 0, 3}});
  // With an inner part of 1 the first two orders are equal. With 24 the first and the third are.
  std::map<int64_t, std::set<int64_t>> orders;  // by inner part
  for (const auto& d : All()) orders[d[1]].insert(d[2]);
  EXPECT_THAT(orders[1], ElementsAre(0, 2));
  EXPECT_THAT(orders[2], ElementsAre(0, 1, 2));
  EXPECT_THAT(orders[24], ElementsAre(0, 1));
}

TEST_F(Entities, UnrollsAreBounded) {
  const auto y = builder_.DefineSplit(loops_[0], /*max_innermost=*/4);
  builder_.DefineUnroll(y[1]);
  builder_.DefineUnroll(loops_[2]);
  builder_.LimitUnrolled(40);
  // One iteration is not unrolled. 4·12 exceeds the limit, but each loop alone does not.
  EXPECT_EQ(All().size(), 2u + 4u + 4u + 3u);
}

}  // namespace
}  // namespace hone::space
