// The candidates of whole searches, and what the evaluator says of them. A faster evaluation must
// not change them. HONE_UPDATE_GOLDEN=1 updates the file.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/operator/operator.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/search/evaluator.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/generate.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::search {
namespace {

struct Task {
  const char* op;
  const char* target = "x86-avx512";
  const char* draft = "draft";
  const char* model = "xgboost";
};

const Task kTasks[] = {
    {"matmul m=512 n=512 k=512"},
    {"matmul m=512 n=512 k=512", "x86-avx512", "residual"},
    {"matmul m=512 n=512 k=512", "nvidia/a100"},
    {"conv2d n=1 h=28 w=28 ci=128 co=128 k=3 s=1 p=1", "x86-avx512", "residual"},
    {"conv2d n=1 h=28 w=28 ci=32 co=32 k=3 s=1 p=1", "arm-dotprod"},
    {"winograd_conv2d n=1 h=14 w=14 ci=32 co=32"},
    {"depthwise_conv2d n=1 h=30 w=30 c=48 k=3 s=2 p=1", "x86-avx512", "residual"},
    {"quantized_matmul m=64 n=96 k=128"},
    {"softmax m=512 n=1000", "x86-avx512", "residual"},
    {"softmax m=512 n=1000", "nvidia/a100"},
    {"layer_norm m=512 n=768", "x86-avx512", "residual"},
    {"attention b=1 h=2 s=48 d=40", "x86-avx512", "residual"},
    {"transpose m=300 n=200", "x86-avx2", "draft", "residual"},
    {"argmax m=200 n=333", "x86-avx2", "draft", "gp"},
};

// A search with simulated results, which are the draft's cycles with noise.
class Search {
 public:
  explicit Search(const Task& task) : target_(*target::TargetByName(task.target)) {
    std::vector<std::string> words = absl::StrSplit(task.op, ' ');
    const std::string op = words[0];
    words.erase(words.begin());
    spaces_ = *space::GenerateDesignSpaces(
        std::make_shared<const ir::Workload>(*op::BuildWorkload(op, words)), target_,
        /*tolerance=*/1e-3);
    context_ = {.target = target_,
                .draft = *cost_model::CreateCostModel(task.draft, {}),
                .seed = 7,
                .population = 128};
    for (const auto& space : spaces_) context_.spaces.push_back(space.get());
    model_ = *cost_model::CreateCostModel(task.model, {});
  }

  // Returns a digest of the candidates and one of their programs, scores and features.
  std::string Run(int rounds) {
    auto strategy = *CreateSearchStrategy("portfolio", context_);
    Evaluator evaluator(context_, /*draft=*/true);
    EXPECT_THAT(evaluator.UseFeaturesOf(model_.get()), IsOk());
    DigestBuilder candidates, evaluations;
    for (int round = 0; round < rounds; ++round) {
      std::vector<Point> points;
      const auto proposed = *strategy->Propose(16, round, model_.get());
      for (const record::Candidate& candidate : proposed) {
        candidates.Add(absl::string_view(candidate.space_digest));
        for (const int64_t decision : candidate.decisions) candidates.Add(decision);
        int space = 0;
        while (spaces_[space]->digest() != candidate.space_digest) ++space;
        points.push_back({space, candidate.decisions});
      }
      std::vector<Measured> results;
      const std::vector<EvaluationPtr> evaluated = *evaluator.Evaluate(points);
      for (size_t i = 0; i < evaluated.size(); ++i) {
        const Evaluation& evaluation = *evaluated[i];
        EXPECT_TRUE(evaluation.legal);
        evaluations.Add(evaluation.program);
        evaluations.Add(double{static_cast<float>(evaluation.draft)});
        for (const float value : evaluation.rows) evaluations.Add(double{value});
        results.push_back({proposed[i], record::Outcome::kOk, Latency(evaluation)});
        Remember(evaluation, results.back().latency_ns);
      }
      strategy->Tell(results);
      Train();
    }
    return candidates.Finish().ToHex() + " " + evaluations.Finish().ToHex();
  }

 private:
  static double Latency(const Evaluation& evaluation) {
    return (1 + 0.3 * Rng(evaluation.program.low).Uniform()) / evaluation.draft;
  }
  void Remember(const Evaluation& evaluation, double latency) {
    matrix_.columns = static_cast<int>(evaluation.rows.size()) / evaluation.row_count;
    matrix_.Append(evaluation.rows, evaluation.row_count);
    latencies_.push_back(latency);
  }
  void Train() {
    const double best = *std::min_element(latencies_.begin(), latencies_.end());
    std::vector<double> throughput;
    for (const double latency : latencies_) throughput.push_back(best / latency);
    EXPECT_THAT(model_->Update(matrix_, throughput), IsOk());
  }

  const target::Target target_;
  std::vector<std::unique_ptr<space::DesignSpace>> spaces_;
  SearchContext context_;
  std::unique_ptr<cost_model::CostModel> model_;
  cost_model::FeatureMatrix matrix_;
  std::vector<double> latencies_;
};

TEST(ProposalsTest, AreUnchanged) {
  GoldenOfTest golden;
  for (const Task& task : kTasks) {
    golden.Add(absl::StrCat(task.op, " on ", task.target, ", ", task.draft, " and ", task.model,
                            ": ", Search(task).Run(/*rounds=*/4)));
  }
}

}  // namespace
}  // namespace hone::search
