#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/compiler_environment.h"
#include "server/service/services.h"
#include "tests/fakes/manual_store.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kWorkload[] =
    "workload matmul\ninput A: f32[512, 512]\ninput B: f32[512, 512]\n"
    "output C[i: 512, j: 512] = sum(k: 512) A[i, k] * B[k, j]\n";
constexpr char kSpace[] =
    "trace 1\nb0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_perfect_tile(l0, parts=2)\nl3, l4 = split(l0, x0, x1)\n"
    "x2, x3 = sample_perfect_tile(l1, parts=2)\nl5, l6 = split(l1, x2, x3)\n"
    "x4 = sample_categorical(candidates=[0, 4])\nannotate(l2, \"prefetch\", x4)\n"
    "reorder(l3, l5, l2, l4, l6)\nvectorize(l6)\n";

std::string Trace(const std::string& end, const std::vector<int64_t>& decisions) {
  const auto text =
      job::MakeCompilerEnvironment(1)->TraceText(absl::StrCat(kWorkload, kSpace, end), decisions);
  EXPECT_THAT(text, IsOk());
  return text.value_or("");
}

class ExplanationTest : public ::testing::Test {
 protected:
  // Without a draft that comes with the program.
  static target::Target Machine(int cores) {
    target::Target target = target::TargetByName("x86-avx2").value();
    target.vector_bits = 128;
    target.cores = cores;
    return target;
  }
  absl::StatusOr<v1::Explanation> ExplainIt(const Explained& what) {
    v1::Explanation explanation;
    HONE_RETURN_IF_ERROR(Explain(store_, *environment_, what, explanation));
    return explanation;
  }
  absl::StatusOr<v1::Explanation> ExplainTrace(const std::string& trace, int cores = 2) {
    return ExplainIt({.trace = trace, .target = Machine(cores).ToText()});
  }
  v1::Explanation EstimateOfTrace(const std::string& trace, int cores = 2) {
    const auto explanation = ExplainTrace(trace, cores);
    EXPECT_THAT(explanation, IsOk());
    return explanation.value_or(v1::Explanation());
  }
  static const v1::EstimateTerm* Find(const v1::Explanation& estimate, absl::string_view name) {
    for (const v1::EstimateTerm& term : estimate.terms()) {
      if (term.name() == name) return &term;
    }
    return nullptr;
  }
  record::Record Put(const std::vector<int64_t>& decisions, double latency_ns,
                     const std::string& policy = "screen", const std::string& space = kSpace) {
    record::Record record{.workload_digest = "w", .op = "matmul", .target = "t", .job_id = "1"};
    record.policy.name = policy;
    record.candidate = {DigestOf(space).ToHex(), decisions};
    record.result.latency_ns = latency_ns;
    if (latency_ns == 0) record.result.outcome = record::Outcome::kCrash;
    store_.Append(record, [&](absl::StatusOr<record::Record> kept) {
      EXPECT_THAT(kept, IsOk());
      record = *std::move(kept);
    });
    return record;
  }
  v1::Explanation Tried(const record::Record& record) {
    const auto explanation = ExplainIt({.trace = Trace("", record.candidate.decisions),
                                        .target = Machine(2).ToText(),
                                        .record = record});
    EXPECT_THAT(explanation, IsOk());
    return explanation.value_or(v1::Explanation());
  }

  store::ManualStore store_;
  const std::unique_ptr<job::TaskEnvironment> environment_ = job::MakeCompilerEnvironment(1);
};

TEST_F(ExplanationTest, TermsAddUpToTheEstimateOfTheDraft) {
  const v1::Explanation estimate = EstimateOfTrace(Trace("parallel(l3)\n", {32, 16, 32, 16, 0}));
  ASSERT_THAT(estimate.statements(), SizeIs(1));
  EXPECT_EQ(estimate.statements(0).name(), "C");
  EXPECT_DOUBLE_EQ(estimate.statements(0).cycles(), estimate.estimate_cycles());
  EXPECT_FALSE(estimate.learned());
  const auto features = environment_->DescribeFeatures(Trace("parallel(l3)\n", {32, 16, 32, 16, 0}),
                                                       Machine(2).ToText(), "analytic");
  ASSERT_THAT(features, IsOk());
  for (size_t c = 0; c < features->columns.size(); ++c) {
    if (features->columns[c] != "draft_cycles") continue;
    EXPECT_NEAR(std::exp2(features->values[c]) - 1, estimate.estimate_cycles(),
                1e-4 * estimate.estimate_cycles());
  }
  double previous = 1;
  for (const v1::EstimateTerm& term : estimate.terms()) {
    EXPECT_LE(term.gain(), previous) << term.name();
    EXPECT_GE(term.gain(), 0) << term.name();
    EXPECT_LE(term.cycles(), estimate.estimate_cycles() * (1 + 1e-6)) << term.name();
    previous = term.gain();
  }
  EXPECT_EQ(estimate.statements(0).limit(), estimate.terms(0).name());
}

TEST_F(ExplanationTest, AnIdleCoreIsImbalance) {
  const std::vector<int64_t> decisions = {32, 16, 32, 16, 0};
  const v1::EstimateTerm* imbalance = nullptr;
  const v1::Explanation serial = EstimateOfTrace(Trace("", decisions), /*cores=*/4);
  ASSERT_NE(imbalance = Find(serial, "imbalance"), nullptr);
  EXPECT_NEAR(imbalance->gain(), 0.75, 0.01) << "three of four cores do nothing";
  EXPECT_EQ(serial.terms(0).name(), "imbalance");
  EXPECT_EQ(Find(serial, "forks"), nullptr) << "it has no parallel loop";

  const v1::Explanation parallel = EstimateOfTrace(Trace("parallel(l3)\n", decisions), /*cores=*/4);
  imbalance = Find(parallel, "imbalance");
  EXPECT_TRUE(imbalance == nullptr || imbalance->gain() < 0.05);
  EXPECT_NE(Find(parallel, "forks"), nullptr);
}

TEST_F(ExplanationTest, ASumOverRowsThatDoNotFitACacheIsLimitedByIt) {
  constexpr char kCopy[] =
      "workload copy\ninput A: f32[4096, 4096]\noutput C[i: 4096, j: 4096] = A[i, j] + 1.0\n"
      "trace 1\nb0 = block(\"C\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 512, 8)\n"
      "vectorize(l3)\nparallel(l0)\n";
  EXPECT_EQ(EstimateOfTrace(kCopy).terms(0).name(), "memory");
}

TEST_F(ExplanationTest, ALearnedDraftChangesTheWeightOfATerm) {
  const std::string trace = Trace("parallel(l3)\n", {32, 16, 32, 16, 0});
  // Stands for a trained model: only its summary is read.
  class Learned final : public cost_model::CostModel {
   public:
    absl::string_view name() const override { return "residual"; }
    absl::string_view feature_set() const override { return "residual"; }
    absl::Status Update(const cost_model::FeatureMatrix&, const cost_model::Labels&) override {
      return absl::OkStatus();
    }
    absl::StatusOr<cost_model::Prediction> Predict(
        const cost_model::FeatureMatrix&) const override {
      return cost_model::Prediction();
    }
    std::string Summary() const override { return R"({"factors":{"loads":16}})"; }
    absl::StatusOr<std::string> Save() const override { return ""; }
    absl::Status Load(absl::string_view) override { return absl::OkStatus(); }
  } learned;
  HONE_ASSERT_OK_AND_ASSIGN(schedule::TraceFile file, schedule::ParseTraceFile(trace));
  HONE_ASSERT_OK_AND_ASSIGN(
      const ir::Program program,
      schedule::Replay(std::make_shared<const ir::Workload>(std::move(file.workload)),
                       file.parsed.trace, file.parsed.decisions));
  v1::Explanation estimate, preset;
  EXPECT_THAT(EstimateOf(program, Machine(2), &learned, estimate), IsOk());
  EXPECT_TRUE(estimate.learned());
  EXPECT_EQ(estimate.cycle_ns(), 0) << "learned factors compare schedules only";
  EXPECT_EQ(estimate.terms(0).name(), "load ports");
  EXPECT_THAT(EstimateOf(program, Machine(2), nullptr, preset), IsOk());
  EXPECT_NEAR(Find(estimate, "load ports")->cycles(), 16 * Find(preset, "load ports")->cycles(),
              1e-3 * estimate.estimate_cycles());
}

TEST_F(ExplanationTest, GpusHaveTermsOfTheirOwn) {
  constexpr char kBound[] =
      "workload add\ninput A: f32[65536]\noutput C[i: 65536] = A[i] + 1.0\n"
      "trace 1\nb0 = block(\"C\")\nl0 = loops(b0)\nl1, l2 = split(l0, 256, 256)\n"
      "bind(l1, \"blockIdx.x\")\nbind(l2, \"threadIdx.x\")\n";
  const auto explanation =
      ExplainIt({.trace = kBound, .target = target::TargetByName("nvidia/a100")->ToText()});
  ASSERT_THAT(explanation, IsOk());
  EXPECT_NE(Find(*explanation, "launches"), nullptr);
  EXPECT_EQ(Find(*explanation, "pipes"), nullptr);
  EXPECT_GT(explanation->estimate_cycles(), 0);
}

TEST_F(ExplanationTest, CountersBecomeRatios) {
  record::Record record = Put({32, 16, 32, 16, 0}, 100, "confirm");
  // A product of 512 has 134 million multiply-adds.
  record.result.counters =
      "wall_ns 2e6\nprocessor_ns 4e6\ninstructions 6.7108864e7\ncycles 1.6777216e7\n"
      "l1d_misses 134217.728\nl2_misses 1000\nllc_misses ? this machine has none\n"
      "unheard_of 7\n";
  const auto explanation = ExplainIt({.trace = Trace("parallel(l3)\n", record.candidate.decisions),
                                      .target = Machine(2).ToText(),
                                      .record = record,
                                      .speed = {.gflops = 45, .peak_gflops = 90}});
  ASSERT_THAT(explanation, IsOk());
  const auto find = [&](absl::string_view name) {
    const auto found = std::ranges::find(explanation->ratios(), name, &v1::MeasuredValue::name);
    return found == explanation->ratios().end() ? v1::MeasuredValue() : *found;
  };
  EXPECT_EQ(explanation->not_counted(), "");
  EXPECT_EQ(find("share of the peak").value(), 0.5);
  EXPECT_EQ(find("busy cores").value(), 2);
  EXPECT_DOUBLE_EQ(find("clock, GHz").value(), 4.194304);
  EXPECT_EQ(find("instructions per cycle").value(), 4);
  EXPECT_EQ(find("instructions per multiply-add").value(), 0.5);
  EXPECT_DOUBLE_EQ(find("L1 misses").value(), 2);
  EXPECT_EQ(find("bytes from beyond L2").value(), 64000);
  // A and B are read at least once.
  EXPECT_GE(find("bytes from beyond L2").estimate(), 2 * 512 * 512 * 4);
  EXPECT_GE(find("bytes from beyond L2").estimate(), find("bytes from memory").estimate());
  EXPECT_EQ(find("last-level misses").missing(), "this machine has none");
  EXPECT_EQ(find("bytes from memory").missing(), "this machine has none");
  EXPECT_THAT(find("branch misses").missing(), HasSubstr("Hone knows no event"));
  EXPECT_THAT(explanation->counters(), SizeIs(7)) << "unknown counters are left out";
}

TEST_F(ExplanationTest, SaysWhyThereAreNoCounters) {
  const auto why = [&](const record::Record& record, const std::string& target) {
    const auto explanation = ExplainIt(
        {.trace = Trace("", record.candidate.decisions), .target = target, .record = record});
    EXPECT_THAT(explanation, IsOk());
    EXPECT_THAT(explanation->counters(), IsEmpty());
    EXPECT_THAT(explanation->ratios(), IsEmpty());
    return explanation->not_counted();
  };
  const std::string cpu = Machine(2).ToText();
  record::Record record = Put({32, 16, 32, 16, 0}, 100, "confirm");
  EXPECT_THAT(why(record, cpu), HasSubstr("revalidate"));
  record.policy.cache = "flushed";
  EXPECT_THAT(why(record, cpu), HasSubstr("emptied caches"));
  record.policy.name = "screen";
  EXPECT_THAT(why(record, cpu), HasSubstr("only finalists"));
  record.result.outcome = record::Outcome::kCrash;
  EXPECT_THAT(why(record, cpu), HasSubstr("failed"));
}

TEST_F(ExplanationTest, NearSchedulesAreThoseWithOneOrTwoOtherDecisions) {
  const record::Record best = Put({32, 16, 32, 16, 0}, 100, "confirm");
  const int64_t screened = Put({32, 16, 32, 16, 0}, 120).id;
  const record::Record two = Put({32, 16, 64, 8, 4}, 180);
  const record::Record one = Put({64, 8, 32, 16, 0}, 150);
  Put({64, 8, 64, 8, 4}, 130);  // three other decisions
  Put({16, 32, 32, 16, 0}, 0);  // crashed
  Put({8}, 90, "screen", "another");
  const record::Record other = Put({4}, 84, "confirm", "another");
  EXPECT_NE(screened, best.id);

  const v1::Explanation tried = Tried(best);
  EXPECT_EQ(tried.same_space(), 3);
  EXPECT_EQ(tried.near_count(), 2);
  EXPECT_EQ(tried.near_failed(), 1);
  EXPECT_EQ(tried.other_spaces(), 2);
  ASSERT_THAT(tried.near(), SizeIs(2));
  EXPECT_EQ(tried.near(0).record(), one.id);
  EXPECT_DOUBLE_EQ(tried.near(0).ratio(), 1.25) << "both were measured by a search";
  ASSERT_THAT(tried.near(0).changes(), SizeIs(1));
  EXPECT_EQ(tried.near(0).changes(0).name(), "split(i, *, *)");
  EXPECT_THAT(tried.near(0).changes(0).before(), ElementsAre(32, 16));
  EXPECT_THAT(tried.near(0).changes(0).after(), ElementsAre(64, 8));
  EXPECT_EQ(tried.near(1).record(), two.id);
  EXPECT_DOUBLE_EQ(tried.near(1).ratio(), 1.5);
  EXPECT_THAT(tried.near(1).changes(), SizeIs(2));
  ASSERT_TRUE(tried.has_best_of_others());
  EXPECT_DOUBLE_EQ(tried.best_of_others().ratio(), 0.75) << "of the two searches";
  EXPECT_NE(tried.best_of_others().record(), other.id);
}

// Results of other inputs, of another tolerance, and those that were withdrawn.
TEST_F(ExplanationTest, WhatCannotBeComparedIsNotTried) {
  const record::Record best = Put({32, 16, 32, 16, 0}, 100);
  record::Record other = best;
  other.candidate.decisions = {64, 8, 32, 16, 0};
  const auto append = [&](const record::Record& record) {
    store_.Append(record, [](absl::StatusOr<record::Record> kept) { EXPECT_THAT(kept, IsOk()); });
  };
  other.result.inputs = "given";
  append(other);
  other.result.inputs = best.result.inputs;
  other.tolerance = 0.01;
  append(other);
  const v1::Explanation tried = Tried(best);
  EXPECT_EQ(tried.same_space(), 0);
  EXPECT_THAT(tried.near(), IsEmpty());
}

TEST_F(ExplanationTest, BadTracesAreRefusedWithTheReason) {
  EXPECT_THAT(ExplainTrace("workload").status(), StatusIs(absl::StatusCode::kInvalidArgument));
  const auto open = ExplainTrace(absl::StrCat(kWorkload, kSpace));
  EXPECT_THAT(open.status(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(open.status().message(), HasSubstr("an explanation is of a single schedule"));
  EXPECT_THAT(ExplainTrace(absl::StrCat(kWorkload, "trace 1\nb0 = block(\"D\")\n")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ExplainIt({.trace = Trace("", {32, 16, 32, 16, 0}), .target = "no target"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::service
