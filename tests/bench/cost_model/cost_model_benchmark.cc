// The time of an Update, and of a Predict per candidate and per row, for every registered model,
// compared with XGBoost's own prediction. Programs have 2 or 3 statements with 164 features, as in
// tests/server/tuner/cost_model/synthetic.h. Models that read `analytic` get one row each, and
// models that read the loop tree get dependent rows.

#include <benchmark/benchmark.h>
#include <xgboost/c_api.h>

#include <cmath>
#include <string>

#include "server/research/model/models.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/cost_model/pack_objective.h"
#include "server/tuner/cost_model/xgboost_booster.h"
#include "tests/server/tuner/cost_model/synthetic.h"

namespace hone::cost_model {
namespace {

constexpr int kTrainedOn = 500;
constexpr int kBatch = 2048;

// Returns the candidates as rows that the model reads.
SyntheticTask TaskFor(const CostModel& model, uint64_t seed, int candidates) {
  const bool analytic = model.feature_set() == "analytic";
  SyntheticTask task = MakeSyntheticTask(seed, candidates, analytic ? kAnalyticColumns : 164);
  FeatureMatrix& features = task.features;
  for (int i = 0; model.feature_set() == "tree" && i < candidates; ++i) {
    for (int32_t row = features.row_begin[i]; row < features.row_begin[i + 1]; ++row) {
      features.values[static_cast<size_t>(row) * features.columns] =
          static_cast<float>(row - features.row_begin[i] - 1);
    }
  }
  return task;
}

// Arguments: candidates, threads. More threads than idle cores are slow, because XGBoost's threads
// spin at every barrier.
void BM_Update(benchmark::State& state, const std::string& name) {
  const auto model = *CreateCostModel(name, {.threads = static_cast<int>(state.range(1))});
  const SyntheticTask task = TaskFor(*model, /*seed=*/1, static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const absl::Status status = model->Update(task.features, task.throughput);
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
  state.counters["rows"] = task.features.rows();
}

// The slowest labels for an Update: pure noise, which grows the deepest trees.
void BM_UpdateOnNoise(benchmark::State& state) {
  SyntheticTask task = MakeSyntheticTask(/*seed=*/1, static_cast<int>(state.range(0)));
  for (size_t i = 0; i < task.throughput.size(); ++i) {
    task.throughput[i] = std::fmod(static_cast<double>(i) * 0.6180339887, 1.0);
  }
  const auto model = *CreateCostModel("xgboost", {.threads = 1});
  for (auto _ : state) {
    const absl::Status status = model->Update(task.features, task.throughput);
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
}

void CountRows(benchmark::State& state, const FeatureMatrix& features) {
  const auto per_iteration = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["candidates/s"] = {static_cast<double>(features.candidates()), per_iteration};
  state.counters["rows/s"] = {static_cast<double>(features.rows()), per_iteration};
  // Shown as a time per candidate.
  state.counters["s/candidate"] = {static_cast<double>(features.candidates()),
                                   per_iteration | benchmark::Counter::kInvert};
}

// Argument: candidates in the batch.
void BM_Predict(benchmark::State& state, const std::string& name) {
  const auto model = *CreateCostModel(name, {.threads = 1});
  const SyntheticTask train = TaskFor(*model, /*seed=*/1, kTrainedOn);
  const SyntheticTask batch = TaskFor(*model, /*seed=*/2, static_cast<int>(state.range(0)));
  const absl::Status status = model->Update(train.features, train.throughput);
  if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  for (auto _ : state) benchmark::DoNotOptimize(model->Predict(batch.features));
  CountRows(state, batch.features);
}

// The same trees in XGBoost, with a new matrix for every call, as a search would need.
void BM_LibraryPredict(benchmark::State& state) {
  const SyntheticTask train = MakeSyntheticTask(/*seed=*/1, kTrainedOn);
  const SyntheticTask batch = MakeSyntheticTask(/*seed=*/2, static_cast<int>(state.range(0)));
  const auto trained = *XgboostBooster::Create(train.features.values, train.features.columns,
                                               {{"tree_method", "hist"},
                                                {"max_bin", "64"},
                                                {"max_depth", "10"},
                                                {"eta", "0.2"},
                                                {"gamma", "0.001"},
                                                {"min_child_weight", "0"},
                                                {"base_score", "0"},
                                                {"nthread", "1"},
                                                {"verbosity", "0"}});
  PackSum objective(train.features.row_begin, train.throughput, 0.2);
  for (int round = 0; round < 100; ++round) {
    objective.Differentiate(*trained->TrainingScores());
    if (!trained->BoostOneRound(objective.gradient(), objective.hessian()).ok()) {
      state.SkipWithError("no tree");
    }
  }
  const std::string json = *trained->Json();
  BoosterHandle booster = nullptr;
  XGBoosterCreate(nullptr, 0, &booster);
  XGBoosterLoadModelFromBuffer(booster, json.data(), json.size());
  XGBoosterSetParam(booster, "nthread", "1");
  for (auto _ : state) {
    DMatrixHandle matrix = nullptr;
    XGDMatrixCreateFromMat(batch.features.values.data(), batch.features.rows(),
                           batch.features.columns, std::nanf(""), &matrix);
    const bst_ulong* shape = nullptr;
    bst_ulong dimensions = 0;
    const float* scores = nullptr;
    if (XGBoosterPredictFromDMatrix(booster, matrix,
                                    R"({"type": 1, "training": false, "iteration_begin": 0,
                                        "iteration_end": 0, "strict_shape": false})",
                                    &shape, &dimensions, &scores) != 0) {
      state.SkipWithError(XGBGetLastError());
    }
    benchmark::DoNotOptimize(scores);
    XGDMatrixFree(matrix);
  }
  XGBoosterFree(booster);
  CountRows(state, batch.features);
}

BENCHMARK(BM_UpdateOnNoise)
    ->ArgName("candidates")
    ->Arg(kTrainedOn)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(BM_LibraryPredict)->Arg(16)->Arg(kBatch);

void RegisterModels() {
  for (const std::string& name : CostModelNames()) {
    auto* update = benchmark::RegisterBenchmark(("update/" + name).c_str(), BM_Update, name);
    update->ArgNames({"candidates", "threads"})->Unit(benchmark::kMillisecond)->UseRealTime();
    if (name == "xgboost") {
      update->ArgsProduct({{64, 256, kTrainedOn, 2000}, {1, 2}});
    } else {
      update->ArgsProduct({{64, kTrainedOn}, {1}});
    }
    benchmark::RegisterBenchmark(("predict/" + name).c_str(), BM_Predict, name)
        ->ArgName("batch")
        ->Arg(16)
        ->Arg(kBatch);
  }
}

}  // namespace
}  // namespace hone::cost_model

int main(int argc, char** argv) {
  hone::cost_model::RegisterModels();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
