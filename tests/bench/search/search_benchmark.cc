// The cost of a search and of its parts per candidate (drawing, replaying, hashing, features, draft
// and prediction), on the design spaces that the rules make.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/operator/operator.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/feature/analytic_terms.h"
#include "server/tuner/feature/feature_set.h"
#include "server/tuner/search/evaluator.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/generate.h"

namespace hone::search {
namespace {

struct Task {
  std::string op;
  std::vector<std::string> words;
};
const Task kMatmul = {"matmul", {"m=1024", "n=1024", "k=1024"}};
const Task kConv = {"conv2d", {"n=1", "h=14", "w=14", "ci=256", "co=256", "k=3", "s=1", "p=1"}};
const Task kSoftmax = {"softmax", {"m=512", "n=1000"}};
const Task kLayerNorm = {"layer_norm", {"m=512", "n=768"}};

struct Spaces {
  std::vector<std::unique_ptr<space::DesignSpace>> spaces;
  SearchContext context;

  explicit Spaces(const Task& task) {
    context.target = *target::TargetByName("x86-avx512");
    context.target.cores = 2;
    auto workload = std::make_shared<const ir::Workload>(*op::BuildWorkload(task.op, task.words));
    spaces = *space::GenerateDesignSpaces(workload, context.target);
    for (const auto& space : spaces) context.spaces.push_back(space.get());
  }
};

struct Drawn {
  const space::DesignSpace* space;
  std::vector<int64_t> decisions;
  ir::Program program;
};

std::vector<Drawn> Draw(const Spaces& spaces, int count) {
  std::vector<Drawn> drawn;
  Rng rng(1);
  while (static_cast<int>(drawn.size()) < count) {
    const space::DesignSpace* space =
        spaces.context.spaces[drawn.size() % spaces.context.spaces.size()];
    const std::vector<int64_t> decisions = *space->Sample(rng);
    auto program = space->Replay(decisions);
    if (program.ok()) drawn.push_back({space, decisions, *std::move(program)});
  }
  return drawn;
}

void BM_Sample(benchmark::State& state, const Task& task) {
  const Spaces spaces(task);
  Rng rng(1);
  size_t at = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(
        spaces.context.spaces[at++ % spaces.context.spaces.size()]->Sample(rng));
}

void BM_Mutate(benchmark::State& state, const Task& task) {
  const Spaces spaces(task);
  const std::vector<Drawn> drawn = Draw(spaces, 64);
  Rng rng(1);
  size_t at = 0;
  for (auto _ : state) {
    const Drawn& each = drawn[at++ % drawn.size()];
    benchmark::DoNotOptimize(each.space->Mutate(each.decisions, rng));
  }
}

void BM_Replay(benchmark::State& state, const Task& task) {
  const Spaces spaces(task);
  const std::vector<Drawn> drawn = Draw(spaces, 64);
  size_t at = 0;
  for (auto _ : state) {
    const Drawn& each = drawn[at++ % drawn.size()];
    benchmark::DoNotOptimize(each.space->Replay(each.decisions));
  }
}

void BM_StructuralDigest(benchmark::State& state, const Task& task) {
  const Spaces spaces(task);
  const std::vector<Drawn> drawn = Draw(spaces, 64);
  size_t at = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(drawn[at++ % drawn.size()].program.StructuralDigest());
}

void BM_Features(benchmark::State& state, const Task& task) {
  const Spaces spaces(task);
  const std::vector<Drawn> drawn = Draw(spaces, 64);
  const feature::FeatureSet& set = **feature::FindFeatureSet("statement");
  size_t at = 0;
  for (auto _ : state) {
    std::vector<float> rows;
    int count = 0;
    if (!set.Extract(drawn[at++ % drawn.size()].program, spaces.context.target, rows, count).ok())
      state.SkipWithError("refused");
  }
}

double DraftCycles(const ir::Program& program, const target::Target& target) {
  thread_local feature::Nest nest;
  if (!nest.Analyze(program).ok()) std::abort();
  return feature::EstimateCost(nest, feature::AnalyticMachine::Of(target)).cycles;
}

void BM_Draft(benchmark::State& state, const Task& task) {
  const Spaces spaces(task);
  const std::vector<Drawn> drawn = Draw(spaces, 64);
  size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        DraftCycles(drawn[at++ % drawn.size()].program, spaces.context.target));
  }
}

// Results for the candidates that a strategy proposed, made from the draft with noise, and a model
// trained on them.
class Device {
 public:
  explicit Device(const Spaces* spaces)
      : spaces_(spaces), model_(*cost_model::CreateCostModel("xgboost", {})) {}

  // Also trains the model.
  std::vector<Measured> Measure(const std::vector<record::Candidate>& candidates) {
    const feature::FeatureSet& set = **feature::FindFeatureSet("statement");
    matrix_.columns = set.Columns();
    std::vector<Measured> results;
    for (const record::Candidate& candidate : candidates) {
      for (const auto& space : spaces_->spaces) {
        if (space->digest() != candidate.space_digest) continue;
        const ir::Program program = *space->Replay(candidate.decisions);
        std::vector<float> rows;
        int count = 0;
        if (!set.Extract(program, spaces_->context.target, rows, count).ok()) continue;
        matrix_.Append(rows, count);
        latencies_.push_back(DraftCycles(program, spaces_->context.target) *
                             (1 + 0.3 * Rng(program.StructuralDigest().low).Uniform()));
        results.push_back({candidate, record::Outcome::kOk, latencies_.back()});
      }
    }
    const double best = *std::min_element(latencies_.begin(), latencies_.end());
    std::vector<double> throughput;
    for (const double latency : latencies_) throughput.push_back(best / latency);
    if (!model_->Update(matrix_, throughput).ok()) std::abort();
    return results;
  }
  const cost_model::CostModel* model() const { return model_.get(); }
  const cost_model::FeatureMatrix& matrix() const { return matrix_; }

 private:
  const Spaces* const spaces_;
  std::unique_ptr<cost_model::CostModel> model_;
  cost_model::FeatureMatrix matrix_;
  std::vector<double> latencies_;
};

// The proposals of a search of 128 trials like a job's: batches of 16, the next of which is
// proposed before the results of the last are told. The time does not include the training. The
// label is a digest of the proposals, which a faster program must not change. Argument: threads.
void BM_Search(benchmark::State& state, const Task& task, const std::string& name) {
  constexpr int kTrials = 128, kBatch = 16;
  const Spaces spaces(task);
  SearchContext context = spaces.context;
  context.draft = *cost_model::CreateCostModel("residual", {});
  context.threads = static_cast<int>(state.range(0));
  DigestBuilder proposals;
  for (auto _ : state) {
    ++context.seed;
    Device device(&spaces);
    std::vector<Measured> results;
    std::vector<record::Candidate> pending;
    auto strategy = *CreateSearchStrategy(name, context);
    for (int trials = 0; trials < kTrials; trials += kBatch) {
      for (const Measured& result : results) strategy->Tell(absl::MakeConstSpan(&result, 1));
      auto proposed = *strategy->Propose(kBatch, trials, device.model());
      state.PauseTiming();
      for (const record::Candidate& candidate : proposed) {
        proposals.Add(absl::string_view(candidate.space_digest));
        for (const int64_t decision : candidate.decisions) proposals.Add(decision);
      }
      if (!pending.empty()) results = device.Measure(pending);
      pending = std::move(proposed);
      state.ResumeTiming();
    }
  }
  state.SetItemsProcessed(state.iterations() * kTrials);
  state.SetLabel(proposals.Finish().ToHex());
}

void BM_Predict(benchmark::State& state, const Task& task) {
  const Spaces spaces(task);
  auto strategy = *CreateSearchStrategy("random", spaces.context);
  Device device(&spaces);
  device.Measure(*strategy->Propose(256, 0, nullptr));
  for (auto _ : state) benchmark::DoNotOptimize(device.model()->Predict(device.matrix()));
  state.SetItemsProcessed(state.iterations() * device.matrix().candidates());
}

// Random candidates of all spaces, and then mutations of these and of mutations, as in a search.
std::vector<Point> Generations(const SearchContext& context) {
  constexpr size_t kDrawn = 512, kAll = 2048;
  std::vector<Point> points;
  Rng rng(1);
  while (points.size() < kAll) {
    const bool draws = points.size() < kDrawn;
    const Point& parent = draws ? points.emplace_back(points.size() % context.spaces.size())
                                : points[rng.Below(points.size())];
    const space::DesignSpace& space = *context.spaces[parent.space];
    auto drawn = draws ? space.Sample(rng) : space.Mutate(parent.decisions, rng);
    if (draws)
      points.back().decisions = *std::move(drawn);
    else if (drawn.ok())
      points.push_back({parent.space, *std::move(drawn)});
  }
  return points;
}

// Candidates per second that an evaluator processes on one core: replayed, hashed and drafted by
// this model. With a second model, also its features and the ranking.
void Evaluate(benchmark::State& state, const Task& task, const char* draft, bool ranked) {
  const Spaces spaces(task);
  SearchContext context = spaces.context;
  context.draft = *cost_model::CreateCostModel(draft, {});
  const std::vector<Point> points = Generations(context);
  auto strategy = *CreateSearchStrategy("random", context);
  Device device(&spaces);
  device.Measure(*strategy->Propose(128, 0, nullptr));
  const cost_model::CostModel* const model = ranked ? device.model() : nullptr;
  for (auto _ : state) {
    Evaluator evaluator(context, /*draft=*/true);
    if (!evaluator.UseFeaturesOf(model).ok()) state.SkipWithError("no features");
    for (size_t begin = 0; begin < points.size(); begin += 512) {
      const std::vector<EvaluationPtr> evaluations =
          *evaluator.Evaluate(absl::MakeConstSpan(points).subspan(begin, 512));
      benchmark::DoNotOptimize(evaluator.Predict(evaluations, model));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(points.size()));
}

void BM_EvaluateByDraft(benchmark::State& state, const Task& task) {
  Evaluate(state, task, "draft", /*ranked=*/false);
}
void BM_EvaluateByModel(benchmark::State& state, const Task& task) {
  Evaluate(state, task, "draft", /*ranked=*/true);
}
void BM_EvaluateByLearnedDraft(benchmark::State& state, const Task& task) {
  Evaluate(state, task, "residual", /*ranked=*/true);
}

void Register(const Task& task) {
  using Part = void (*)(benchmark::State&, const Task&);
  const std::pair<const char*, Part> parts[] = {{"sample", BM_Sample},
                                                {"mutate", BM_Mutate},
                                                {"replay", BM_Replay},
                                                {"digest", BM_StructuralDigest},
                                                {"features", BM_Features},
                                                {"draft", BM_Draft},
                                                {"predict_256", BM_Predict},
                                                {"evaluate_draft", BM_EvaluateByDraft},
                                                {"evaluate_model", BM_EvaluateByModel},
                                                {"evaluate_learned", BM_EvaluateByLearnedDraft}};
  for (const auto& [name, part] : parts)
    benchmark::RegisterBenchmark((task.op + "/" + name).c_str(), part, task);
}

void RegisterSearches() {
  const Task tasks[] = {
      {"matmul", {"m=512", "n=512", "k=512"}},
      {"conv2d", {"n=1", "h=28", "w=28", "ci=128", "co=128", "k=3", "s=1", "p=1"}},
      kSoftmax,
      kLayerNorm};
  for (const Task& task : tasks) {
    for (const std::string& name : SearchStrategyNames()) {
      benchmark::RegisterBenchmark((task.op + "/search_128/" + name).c_str(), BM_Search, task, name)
          ->Arg(1)
          ->Arg(2)
          ->Unit(benchmark::kMillisecond)
          ->Iterations(3);
    }
  }
}

}  // namespace
}  // namespace hone::search

int main(int argc, char** argv) {
  hone::search::Register(hone::search::kMatmul);
  hone::search::Register(hone::search::kConv);
  hone::search::Register(hone::search::kSoftmax);
  hone::search::Register(hone::search::kLayerNorm);
  hone::search::RegisterSearches();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
