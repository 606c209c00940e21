#include "tests/server/tuner/search/other_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/operator/operator.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/registry.h"
#include "server/tuner/feature/feature_set.h"
#include "server/tuner/search/evaluator.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/generate.h"
#include "tests/status.h"

namespace hone::search {
namespace {

constexpr int kRounds = 6, kBatch = 16, kFirstLateRound = 4;
constexpr int kDraws = 3000;

class OtherMachine {
 public:
  explicit OtherMachine(const std::string& op) {
    const std::vector<std::string> words =
        op == "matmul" ? std::vector<std::string>{"m=512", "n=512", "k=512"}
                       : std::vector<std::string>{"n=1",    "h=14", "w=14", "ci=256",
                                                  "co=256", "k=3",  "s=1",  "p=1"};
    spaces_ = *space::GenerateDesignSpaces(
        std::make_shared<const ir::Workload>(*op::BuildWorkload(op, words)), target_);
    machine_.factors[cost_model::kForkPart] = 6;
    machine_.factors[cost_model::kLoadPart] = 2;
    machine_.factors[cost_model::kL2Part] = 3;
    machine_.factors[cost_model::kMovePart] = 4;
    Rng rng(1);
    for (int i = 0; i < kDraws; ++i) {
      const size_t space = rng.Below(spaces_.size());
      const auto drawn = spaces_[space]->Sample(rng);
      if (drawn.ok()) best_ns_ = std::min(best_ns_, LatencyNs({spaces_[space]->digest(), *drawn}));
    }
  }

  SearchContext Context(uint64_t seed) const {
    SearchContext context{.target = target_, .seed = seed, .population = 128};
    for (const auto& space : spaces_) context.spaces.push_back(space.get());
    return context;
  }
  double best_ns() const { return best_ns_; }

  double LatencyNs(const record::Candidate& candidate) const {
    cost_model::FeatureMatrix rows;
    AppendRows("draft", candidate, rows);
    if (rows.candidates() == 0) return INFINITY;
    DigestBuilder digest;
    for (const int64_t decision : candidate.decisions) digest.Add(decision);
    const double noise = digest.Finish().low % 3 == 0 ? 1.2 : 1;
    return machine_.Cycles(rows, 0) * noise;
  }
  void AppendRows(const char* set, const record::Candidate& candidate,
                  cost_model::FeatureMatrix& matrix) const {
    int space = 0;
    while (spaces_[space]->digest() != candidate.space_digest) ++space;
    const feature::FeatureSet& features = **feature::FindFeatureSet(set);
    std::vector<float> rows;
    int count = 0;
    const absl::Status status =
        AppendRowsOf(features, *spaces_[space], {space, candidate.decisions}, target_, rows, count);
    if (!status.ok()) return;
    matrix.columns = features.Columns();
    matrix.Append(rows, count);
  }

 private:
  const target::Target target_ = *target::TargetByName("x86-avx2");
  std::vector<std::unique_ptr<space::DesignSpace>> spaces_;
  cost_model::DraftWeights machine_;
  double best_ns_ = INFINITY;
};

const OtherMachine& MachineOf(const std::string& op) {
  static auto* const machines = new std::map<std::string, std::unique_ptr<OtherMachine>>;
  std::unique_ptr<OtherMachine>& machine = (*machines)[op];
  if (machine == nullptr) machine = std::make_unique<OtherMachine>(op);
  return *machine;
}

}  // namespace

Progress RunOnOtherMachine(const std::string& strategy_name, int seeds, const std::string& op) {
  const OtherMachine& machine = MachineOf(op);
  double opening = 0, late = 0, best = 0, openings = 0, lates = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto strategy = *CreateSearchStrategy(strategy_name, machine.Context(seed));
    const auto model = *cost_model::CreateCostModel("xgboost", {});
    cost_model::FeatureMatrix matrix;
    std::vector<double> latencies;
    double best_ns = INFINITY;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Measured> results;
      const auto proposed = *strategy->Propose(kBatch, round, model.get());
      for (const record::Candidate& candidate : proposed) {
        const double latency = machine.LatencyNs(candidate);
        results.push_back({candidate, record::Outcome::kOk, latency});
        machine.AppendRows("statement", candidate, matrix);
        latencies.push_back(latency);
        best_ns = std::min(best_ns, latency);
        const double above = std::log(latency / machine.best_ns());
        if (round == 0) opening += above, ++openings;
        if (round >= kFirstLateRound) late += above, ++lates;
      }
      strategy->Tell(results);
      std::vector<double> throughput;
      for (const double latency : latencies) throughput.push_back(best_ns / latency);
      EXPECT_THAT(model->Update(matrix, throughput), IsOk());
    }
    best += std::log(best_ns / machine.best_ns()) / seeds;
  }
  const Progress progress{std::exp(opening / openings), std::exp(late / lates), std::exp(best)};
  std::printf("%s on %s: first 16 %.2f, trials 65 to 96 %.2f, best %.2f\n", strategy_name.c_str(),
              op.c_str(), progress.opening, progress.late, progress.best);
  return progress;
}

}  // namespace hone::search
