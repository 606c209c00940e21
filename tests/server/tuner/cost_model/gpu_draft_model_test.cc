// The draft of GPUs as a cost model, on candidates of real design spaces.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_split.h"
#include "common/base/rng.h"
#include "common/operator/operator.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/flat_forest.h"
#include "server/tuner/cost_model/metric.h"
#include "server/tuner/cost_model/model_file.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/cost_model/registry.h"
#include "server/tuner/feature/feature_set.h"
#include "server/tuner/feature/gpu_terms.h"
#include "server/tuner/feature/nest.h"
#include "server/tuner/space/generate.h"
#include "tests/status.h"

namespace hone::cost_model {
namespace {

using ::testing::HasSubstr;
using GpuMachine = feature::GpuMachine;

constexpr const char* kGpuTasks[] = {
    "matmul m=256 n=256 k=256",
    "conv2d n=1 h=14 w=14 ci=64 co=64 k=3 s=1 p=1",
    "softmax m=128 n=1000",
    "batch_matmul b=4 m=64 n=64 k=64",
    "dense m=8 n=1000 k=512",
    "depthwise_conv2d n=1 h=28 w=28 c=64 k=3 s=1 p=1",
    "layer_norm m=128 n=768",
    "mlp m=16 k=128 h=256",
    // Not trained on.
    "dense m=16 n=512 k=1000",
    "softmax m=256 n=500",
    "conv2d n=1 h=28 w=28 ci=32 co=64 k=3 s=1 p=1",
};
constexpr size_t kGpuTrained = 8;

// Candidates of several tasks, with the programs that they were extracted from.
struct GpuCandidates {
  target::Target target;
  std::vector<ir::Program> programs;
  std::vector<int32_t> tasks;

  FeatureMatrix Rows(const std::string& name) const {
    const feature::FeatureSet& set = **feature::FindFeatureSet(name);
    FeatureMatrix matrix{.columns = set.Columns()};
    for (const ir::Program& program : programs) {
      std::vector<float> rows;
      int count = 0;
      EXPECT_THAT(set.Extract(program, target, rows, count), IsOk());
      matrix.Append(rows, count);
    }
    return matrix;
  }
  // The estimates of a machine.
  std::vector<double> Cycles(const GpuMachine& machine) const {
    std::vector<double> cycles;
    feature::Nest nest;
    for (const ir::Program& program : programs) {
      EXPECT_THAT(nest.Analyze(program), IsOk());
      cycles.push_back(feature::EstimateGpuCost(nest, machine).cycles);
    }
    return cycles;
  }
  // Labels if these were latencies.
  std::vector<double> Throughput(const std::vector<double>& cycles) const {
    std::vector<double> best(tasks.back() + 1, INFINITY), throughput;
    for (size_t i = 0; i < cycles.size(); ++i) best[tasks[i]] = std::min(best[tasks[i]], cycles[i]);
    for (size_t i = 0; i < cycles.size(); ++i) throughput.push_back(best[tasks[i]] / cycles[i]);
    return throughput;
  }
};

GpuCandidates DrawGpuCandidates(const std::string& target, size_t first, size_t end, int each) {
  GpuCandidates drawn{.target = *target::TargetByName(target)};
  for (size_t t = first; t < end; ++t) {
    const std::vector<std::string> words = absl::StrSplit(kGpuTasks[t], ' ');
    const auto workload = std::make_shared<const ir::Workload>(
        *op::BuildWorkload(words[0], absl::MakeConstSpan(words).subspan(1)));
    const auto spaces = *space::GenerateDesignSpaces(workload, drawn.target);
    Rng rng(t);
    for (int i = 0; i < each; ++i) {
      const space::DesignSpace& space = *spaces[rng.Below(spaces.size())];
      const auto decisions = space.Sample(rng);
      if (!decisions.ok()) continue;
      auto program = space.Replay(*decisions);
      if (!program.ok()) continue;
      drawn.programs.push_back(*std::move(program));
      drawn.tasks.push_back(static_cast<int32_t>(t - first));
    }
  }
  return drawn;
}

double GpuAccuracy(const CostModel& model, const FeatureMatrix& rows,
                   const std::vector<double>& throughput, const std::vector<int32_t>& tasks) {
  const Prediction prediction = *model.Predict(rows);
  double sum = 0;
  for (int32_t t = 0; t <= tasks.back(); ++t) {
    std::vector<double> scores, labels;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i] != t) continue;
      scores.push_back(prediction.mean[i]);
      labels.push_back(throughput[i]);
    }
    sum += PairwiseAccuracy(scores, labels);
  }
  return sum / (tasks.back() + 1);
}

TEST(GpuDraftModelTest, UntrainedIsTheEstimateBitByBit) {
  for (const char* const target : {"generic/opencl", "arm/mali-g610", "nvidia/a100"}) {
    const GpuCandidates drawn = DrawGpuCandidates(target, 0, std::size(kGpuTasks), 25);
    const std::vector<double> cycles = drawn.Cycles(GpuMachine::Of(drawn.target));
    size_t launches = 0;
    for (const char* const name : {"draft", "residual"}) {
      const auto model = *CreateCostModel(name, {});
      const FeatureMatrix rows = drawn.Rows(name);
      HONE_ASSERT_OK_AND_ASSIGN(const Prediction prediction, model->Predict(rows));
      for (size_t i = 0; i < cycles.size(); ++i)
        ASSERT_EQ(prediction.mean[i], 1 / static_cast<double>(static_cast<float>(cycles[i])));
      for (int r = 0; r < rows.rows(); ++r)
        launches += rows.row(r).last(kDraftColumns)[kGpuEstimate] > 0;
    }
    EXPECT_GT(launches, 2.1 * cycles.size()) << "some have several launches";
  }
}

// A factor has the effect of another constant of the machine. How blocks share the schedulers
// differs between waves, which the parts do not describe, but no constant here depends on it.
TEST(GpuDraftModelTest, FactorsActLikeConstantsOfTheMachine) {
  const GpuCandidates drawn = DrawGpuCandidates("nvidia/a100", 0, std::size(kGpuTasks), 25);
  const FeatureMatrix rows = drawn.Rows("draft");
  const GpuMachine preset = GpuMachine::Of(drawn.target);
  const auto expect = [&](DraftPart part, const std::function<void(GpuMachine&)>& change) {
    GpuMachine machine = preset;
    change(machine);
    DraftWeights weights;
    weights.factors[part] = 4;
    const std::vector<double> before = drawn.Cycles(preset), after = drawn.Cycles(machine);
    double worst = 0, sum = 0, most = 0;
    for (size_t i = 0; i < after.size(); ++i) {
      const double off = std::abs(std::log(weights.Cycles(rows, static_cast<int>(i)) / after[i]));
      worst = std::max(worst, off);
      sum += off;
      most = std::max(most, after[i] / before[i]);
    }
    std::printf("%s: off by %.4f, at most %.4f; largest effect %.2f\n",
                std::string(DraftPartName(part)).c_str(), sum / after.size(), worst, most);
    EXPECT_GT(most, 1.1) << DraftPartName(part);
    EXPECT_LT(sum / after.size(), 1e-4) << DraftPartName(part);
    EXPECT_LT(worst, 5e-3) << DraftPartName(part);
  };
  expect(kGpuLaunchPart, [](GpuMachine& m) { m.launch_cycles *= 4; });
  expect(kGpuMemoryPart, [](GpuMachine& m) { m.memory_bytes_per_cycle /= 4; });
  expect(kGpuL2Part, [](GpuMachine& m) { m.l2_bytes_per_cycle /= 4; });
  expect(kGpuLoadWaitPart, [](GpuMachine& m) { m.memory_latency *= 4; });
  expect(kGpuBarrierPart, [](GpuMachine& m) { m.barrier_cycles *= 4; });
  expect(kGpuSumWaitPart, [](GpuMachine& m) {
    m.shared_latency *= 4;
    m.fma_latency *= 4;
  });
}

// A machine with slower memory, launches and barriers than the presets say.
TEST(GpuDraftModelTest, LearnsTheConstantsOfAMachineOnOtherTasks) {
  const std::string target = "generic/opencl";
  const GpuCandidates train = DrawGpuCandidates(target, 0, kGpuTrained, 100);
  const GpuCandidates unseen = DrawGpuCandidates(target, kGpuTrained, std::size(kGpuTasks), 100);
  GpuMachine machine = GpuMachine::Of(train.target);
  machine.l2_bytes_per_cycle /= 16;
  machine.barrier_cycles *= 16;
  machine.fma_latency /= 8;
  machine.issues *= 4;
  const std::vector<double> labels = train.Throughput(train.Cycles(machine));
  const std::vector<double> judged = unseen.Throughput(unseen.Cycles(machine));
  for (const char* const name : {"draft", "residual"}) {
    const auto model = *CreateCostModel(name, {});
    const FeatureMatrix rows = unseen.Rows(name);
    const double before = GpuAccuracy(*model, rows, judged, unseen.tasks);
    ASSERT_THAT(model->Update(train.Rows(name), Labels{labels, train.tasks}), IsOk());
    const double after = GpuAccuracy(*model, rows, judged, unseen.tasks);
    std::printf("%s: %.3f of pairs before, %.3f after; %s\n", name, before, after,
                model->Summary().c_str());
    EXPECT_GT(after, before + 0.03) << name;
    // Loading gives the same scores.
    HONE_ASSERT_OK_AND_ASSIGN(const std::string bytes, model->Save());
    const auto loaded = *CreateCostModel(name, {});
    ASSERT_THAT(loaded->Load(bytes), IsOk());
    EXPECT_EQ(loaded->Predict(rows)->mean, model->Predict(rows)->mean) << name;
  }
}

// Rows of a program for a CPU and of one for a GPU.
FeatureMatrix RowsOfBothKinds(int columns) {
  FeatureMatrix both{.columns = columns};
  for (const DraftPart part : {kBodyPart, kGpuEstimate}) {
    std::vector<float> row(columns, 0.0f);
    row[columns - kDraftColumns + part] = 1000;
    row[columns - kDraftColumns + kGpuLaunchPart] = part == kGpuEstimate ? 1000 : 0;
    both.Append(row, 1);
  }
  return both;
}

TEST(GpuDraftModelTest, RefusesCandidatesOfAnotherKindOfTarget) {
  const GpuCandidates train = DrawGpuCandidates("generic/opencl", 0, 2, 20);
  const std::vector<double> labels = train.Throughput(train.Cycles(GpuMachine::Of(train.target)));
  for (const char* const name : {"draft", "residual"}) {
    const auto model = *CreateCostModel(name, {});
    const FeatureMatrix both = RowsOfBothKinds(train.Rows(name).columns);
    const std::vector<double> throughput = {1, 1};
    EXPECT_THAT(model->Update(both, throughput),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("candidate 1 is a program for a GPU, but the draft is of a CPU; "
                                   "learn from the results of one target")));
    EXPECT_THAT(model->Predict(both), IsOk()) << "untrained";
  }
  const auto model = *CreateCostModel("draft", {});
  ASSERT_THAT(model->Update(train.Rows("draft"), Labels{labels, train.tasks}), IsOk());
  EXPECT_THAT(model->Predict(RowsOfBothKinds(kDraftColumns)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("candidate 0 is a program for a CPU, but the draft is of a GPU")));
}

TEST(GpuDraftModelTest, RefusesDamagedFactors) {
  DraftWeights weights;
  ByteWriter writer;
  weights.Serialize(writer);
  const std::string bytes = std::move(writer).Finish();
  const auto refused = [](absl::string_view damaged, const std::string& why) {
    ByteReader reader(damaged);
    DraftWeights read;
    EXPECT_THAT(read.Parse(reader), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  for (size_t size = 0; size < bytes.size(); ++size)
    refused(absl::string_view(bytes).substr(0, size), "");
  ByteWriter other;
  other.Add("TPU", uint32_t{3});
  refused(std::move(other).Finish(), "it is of a 'TPU', but this program knows CPU, GPU");
  ByteWriter fewer;
  fewer.Add("GPU", uint32_t{3}, 1.0, 1.0, 1.0);
  refused(std::move(fewer).Finish(), "it has 3 factors, but that of a GPU has 14");
}

TEST(GpuDraftModelTest, RefusesFilesOfOtherVersionsPartsAndColumns) {
  const auto refused = [](uint32_t version, uint32_t columns, const DraftWeights& weights,
                          double share, int tree_columns, const std::string& why) {
    ByteWriter writer;
    weights.Serialize(writer);
    writer.Add(share);
    FlatForest::Create({}, tree_columns)->Serialize(writer);
    const std::string bytes = EncodeModel(
        {.name = "residual", .version = version, .feature_set = "residual", .columns = columns},
        std::move(writer).Finish());
    EXPECT_THAT((*CreateCostModel("residual", {}))->Load(bytes),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  const GpuCandidates drawn = DrawGpuCandidates("generic/opencl", 0, 1, 20);
  const DraftWeights gpu = DraftWeights::Fit(
      drawn.Rows("draft"),
      Labels{drawn.Throughput(drawn.Cycles(GpuMachine::Of(drawn.target))), drawn.tasks});
  refused(1, kResidualColumns, gpu, 0.5, 183,
          "version 1 of model 'residual', but this program reads version 2");
  refused(2, kResidualColumns, gpu, 0.5, 184,
          "its trees read 184 columns, but those of a GPU read 182");
  refused(2, kResidualColumns, DraftWeights(), 0.5, 182,
          "its trees read 182 columns, but those of a CPU read 184");
  refused(2, kResidualColumns, gpu, 1.5, 182, "the share of its trees is 1.5, not in [0, 1]");
  refused(2, 182, gpu, 0.5, 182, "its header has 182 columns");
}

}  // namespace
}  // namespace hone::cost_model
