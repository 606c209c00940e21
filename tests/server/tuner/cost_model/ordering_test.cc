// Every learned model orders measured programs (tests/bench/sample) that it was not trained on,
// with each feature set that it accepts. The bounds are a few hundredths below the measured
// accuracy; chance is 0.5.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/rng.h"
#include "common/record/dataset.h"
#include "server/job/actor/compiler_environment.h"
#include "server/research/lab/sample.h"
#include "server/research/model/models.h"
#include "server/tuner/cost_model/metric.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/feature/feature_set.h"
#include "tests/server/tuner/cost_model/synthetic.h"
#include "tests/status.h"

namespace hone::cost_model {
namespace {

constexpr int kTrain = 200, kAll = 400;

// The measured candidates of a development task of the sample, in random order, without those that
// failed.
class Task {
 public:
  explicit Task(const std::string& op) {
    const auto dataset = *record::Dataset::Open("tests/bench/sample/x86_64-znver3-avx2-2c.h5");
    int32_t task = 0;
    while (true) {
      const std::string& workload = dataset->tasks()[task].workload;
      if (absl::StartsWith(workload, "workload " + op + "\n") && !*lab::IsHeldOut(workload)) break;
      ++task;
    }
    std::vector<record::DatasetRecord> records = *dataset->Read(0, dataset->size());
    std::erase_if(records, [&](const record::DatasetRecord& record) {
      return record.task != task || record.latency_ns == 0;
    });
    EXPECT_GE(records.size(), static_cast<size_t>(kAll));
    Rng rng(1);
    for (size_t i = records.size(); i > 1; --i) std::swap(records[i - 1], records[rng.Below(i)]);
    double best = INFINITY;
    for (int i = 0; i < kAll; ++i) best = std::min(best, records[i].latency_ns);
    const auto environment = job::MakeCompilerEnvironment(/*threads=*/1);
    for (int i = 0; i < kAll; ++i) {
      throughput_.push_back(best / records[i].latency_ns);
      auto& space = spaces_[records[i].space];
      if (space == nullptr) {
        space =
            *environment->OpenKept(dataset->spaces()[records[i].space], dataset->targets()[0].text);
      }
      candidates_.push_back({space.get(), {space->spaces()[0].digest, records[i].decisions}});
    }
  }
  absl::Span<const double> throughput() const { return throughput_; }
  FeatureMatrix Features(const std::string& set, int begin, int end) const {
    FeatureMatrix matrix;
    for (int i = begin; i < end; ++i) {
      const auto& [space, candidate] = candidates_[i];
      EXPECT_THAT(space->AppendFeatures(set, candidate, &matrix), IsOk());
    }
    return matrix;
  }

 private:
  std::map<int32_t, std::unique_ptr<job::TaskSpaces>> spaces_;
  std::vector<std::pair<const job::TaskSpaces*, record::Candidate>> candidates_;
  std::vector<double> throughput_;
};

const Task& Matmul() {
  static const auto* task = new Task("matmul");
  return *task;
}
const Task& Conv() {
  static const auto* task = new Task("conv2d");
  return *task;
}

struct Case {
  std::string model;
  std::string features;  // empty: the model's default
  double least_matmul, least_conv;
};

class OrderingTest : public testing::TestWithParam<Case> {
 protected:
  static double Accuracy(const Task& task) {
    const auto model =
        *CreateCostModel(GetParam().model, {.seed = 3, .feature_set = GetParam().features});
    const auto labels = task.throughput();
    const std::string set(model->feature_set());
    EXPECT_THAT(model->Update(task.Features(set, 0, kTrain), labels.first(kTrain)), IsOk());
    const auto prediction = model->Predict(task.Features(set, kTrain, kAll));
    EXPECT_THAT(prediction, IsOk());
    return PairwiseAccuracy(prediction->mean, labels.subspan(kTrain), kTimingNoise);
  }
};

TEST_P(OrderingTest, OrdersUnseenCandidates) {
  const double matmul = Accuracy(Matmul()), conv = Accuracy(Conv());
  std::printf("%s %s: %.3f of pairs of the matmul, %.3f of the convolution\n",
              GetParam().model.c_str(), GetParam().features.c_str(), matmul, conv);
  EXPECT_GE(matmul, GetParam().least_matmul);
  EXPECT_GE(conv, GetParam().least_conv);
}

INSTANTIATE_TEST_SUITE_P(
    Models, OrderingTest,
    testing::Values(Case{"formula", "", 0.53, 0.53}, Case{"xgboost", "", 0.60, 0.68},
                    Case{"xgboost-rank", "", 0.58, 0.64}, Case{"xgboost-bag", "", 0.58, 0.64},
                    Case{"mlp", "", 0.69, 0.70}, Case{"gp", "", 0.61, 0.69},
                    Case{"xgboost-rank", "itervar", 0.56, 0.62},
                    Case{"xgboost-rank", "curve", 0.56, 0.62},
                    Case{"xgboost-rank", "curve-one", 0.56, 0.60},
                    Case{"xgboost-rank", "curve-fix", 0.56, 0.62},
                    Case{"xgboost-rank", "curve-fix-reuse", 0.56, 0.60},
                    Case{"xgboost-rank", "knob", 0.56, 0.62}, Case{"gp", "analytic", 0.60, 0.72},
                    Case{"mlp", "analytic", 0.71, 0.72}, Case{"tlp", "", 0.66, 0.68},
                    Case{"tlp-fast", "", 0.66, 0.61}, Case{"tlp-lstm", "", 0.69, 0.67},
                    Case{"tlp-mse", "", 0.65, 0.66}, Case{"state-value", "", 0.6, 0.6},
                    Case{"treegru", "", 0.73, 0.73}, Case{"looptree", "", 0.73, 0.72}),
    [](const auto& info) {
      std::string name = info.param.model + "_" + info.param.features;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// The draft orders programs before anything is measured.
TEST(DraftTest, OrdersMeasuredPrograms) {
  const auto draft = *CreateCostModel("draft", {});
  for (const Task* task : {&Matmul(), &Conv()}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto prediction,
                              draft->Predict(task->Features("draft", 0, kAll)));
    const double accuracy =
        PairwiseAccuracy(prediction.mean, task->throughput(), /*noise=*/kTimingNoise);
    std::printf("%.3f of pairs\n", accuracy);
    EXPECT_GE(accuracy, 0.6);
  }
}

// Two spreads must cover the errors of most candidates, leaving noise aside.
class SpreadTest : public testing::TestWithParam<std::string> {};

TEST_P(SpreadTest, CoversTheErrors) {
  const auto model = *CreateCostModel(GetParam(), {});
  const auto labels = Matmul().throughput();
  ASSERT_THAT(model->Update(Matmul().Features("statement", 0, kTrain), labels.first(kTrain)),
              IsOk());
  const Prediction seen = *model->Predict(Matmul().Features("statement", 0, kTrain));
  const Prediction unseen = *model->Predict(Matmul().Features("statement", kTrain, kAll));
  int covered = 0;
  double spread_seen = 0, spread_unseen = 0;
  for (int i = 0; i < kTrain; ++i) {
    covered += std::abs(unseen.mean[i] - labels[kTrain + i]) <= 2 * unseen.spread[i] + 0.03;
    spread_seen += seen.spread[i];
    spread_unseen += unseen.spread[i];
    EXPECT_LT(unseen.spread[i], 0.5) << "the spread is too wide to be useful";
  }
  std::printf("%s: %d of %d within two spreads of %.3f\n", GetParam().c_str(), covered, kTrain,
              spread_unseen / kTrain);
  EXPECT_GE(covered, 0.8 * kTrain);
  // Each tree of a bag has seen only a part of what the bag has seen.
  EXPECT_GT(spread_unseen, (GetParam() == "gp" ? 1 : 0.95) * spread_seen);
}

INSTANTIATE_TEST_SUITE_P(Models, SpreadTest, testing::Values("gp", "xgboost-bag"),
                         [](const auto& info) { return info.param == "gp" ? "gp" : "bag"; });

TEST(AnalyticRowsTest, PositionsAreThoseOfTheFeatureSet) {
  const std::vector<std::string>& names = (*feature::FindFeatureSet("analytic"))->ColumnNames();
  ASSERT_EQ(names.size(), static_cast<size_t>(kAnalyticColumns));
  EXPECT_EQ(names[kFormulaArithmeticColumn], "formula_arithmetic");
  EXPECT_EQ(names[kFormulaMemoryColumn], "formula_memory");
}

}  // namespace
}  // namespace hone::cost_model
