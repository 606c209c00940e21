// What programs without a replay are worth (server/search/program_source.h): the candidates of an
// evolution, evaluated with them and by replays only, in turns in one process.
//
//   feature_program_benchmark [--generations N] [--rounds N] [OPERATOR key=value… as one word]…

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/operator/operator.h"
#include "server/cost_model/cost_model.h"
#include "server/feature/feature_set.h"
#include "server/search/draft_score.h"
#include "server/search/evaluator.h"
#include "server/search/program_source.h"
#include "server/search/search_strategy.h"
#include "server/space/generate.h"

namespace hone::search {
namespace {

constexpr int kPopulation = 512;

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Spaces {
  std::vector<std::unique_ptr<space::DesignSpace>> spaces;
  SearchContext context;

  explicit Spaces(const std::string& words) {
    std::vector<std::string> arguments = absl::StrSplit(words, ' ');
    const std::string name = arguments[0];
    arguments.erase(arguments.begin());
    context.target = *target::TargetByName("x86-avx512");
    context.target.cores = 2;
    context.seed = 1;
    auto workload = std::make_shared<const ir::Workload>(*op::BuildWorkload(name, arguments));
    spaces = *space::GenerateDesignSpaces(workload, context.target);
    for (const auto& space : spaces) context.spaces.push_back(space.get());
  }
};

// Generations as an evolution has them: draws, then mutations of what the draft likes best.
std::vector<std::vector<Point>> Evolution(const Spaces& spaces, int generations) {
  Evaluator evaluator(&spaces.context);
  Rng rng(1);
  std::vector<std::vector<Point>> all;
  std::vector<Point> parents;
  for (int generation = 0; generation < generations; ++generation) {
    std::vector<Point> points;
    while (points.size() < kPopulation) {
      const auto space = static_cast<int>(rng.Below(spaces.spaces.size()));
      Point parent = parents.empty() ? Point{space, {}} : parents[rng.Below(parents.size())];
      const auto decisions = parents.empty() || rng.Below(20) == 0
                                 ? spaces.spaces[parent.space]->Sample(rng)
                                 : spaces.spaces[parent.space]->Mutate(parent.decisions, rng);
      if (decisions.ok()) points.push_back({parent.space, *decisions});
    }
    const std::vector<EvaluationPtr> evaluations = evaluator.Evaluate(points);
    std::vector<size_t> order(points.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const auto cycles = [&](size_t i) {
        return evaluations[i]->legal ? evaluations[i]->draft_cycles : 1e300;
      };
      return cycles(a) < cycles(b);
    });
    parents.clear();
    for (size_t i = 0; i < kPopulation / 8; ++i) parents.push_back(points[order[i]]);
    all.push_back(std::move(points));
  }
  return all;
}

// A model that reads a feature set and says nothing.
std::unique_ptr<cost_model::CostModel> ModelOf(const std::string& name) {
  return *cost_model::CreateCostModel(name, {});
}

struct Cost {
  double seconds = 0;
  std::vector<double> of_generation;
  ProgramSource::Counts counts;
};

void Evaluate(const SearchContext& context, const std::vector<std::vector<Point>>& generations,
              const cost_model::CostModel* model, Cost& cost) {
  Evaluator evaluator(&context);
  if (!evaluator.UseFeaturesOf(model).ok()) std::abort();
  cost.of_generation.resize(generations.size());
  for (size_t g = 0; g < generations.size(); ++g) {
    const double begin = CpuSeconds();
    if (evaluator.Evaluate(generations[g]).empty()) std::abort();
    const double seconds = CpuSeconds() - begin;
    cost.seconds += seconds;
    cost.of_generation[g] += seconds;
  }
  cost.counts = evaluator.programs().counts();
}

void EvolutionOf(const std::string& words, int generations, int rounds) {
  const Spaces spaces(words);
  const std::vector<std::vector<Point>> all = Evolution(spaces, generations);
  SearchContext programs = spaces.context;
  programs.feature_programs = true;
  const auto model = ModelOf("xgboost");
  for (const cost_model::CostModel* features :
       {static_cast<cost_model::CostModel*>(nullptr), model.get()}) {
    Cost with, without;
    for (int round = 0; round < rounds; ++round) {
      if (round % 2 == 0) Evaluate(programs, all, features, with);
      Evaluate(spaces.context, all, features, without);
      if (round % 2 != 0) Evaluate(programs, all, features, with);
    }
    const double points = static_cast<double>(with.counts.points) * rounds;
    std::printf(
        "| %s | %s | %.0f | %.0f | %.2f | %.2f | %.1f %% | %.1f %% |\n", words.c_str(),
        features == nullptr ? "draft" : "draft, statement", points / without.seconds,
        points / with.seconds, without.seconds / with.seconds,
        without.of_generation.back() / with.of_generation.back(),
        100.0 * static_cast<double>(with.counts.replayed) / static_cast<double>(with.counts.points),
        100.0 * static_cast<double>(with.counts.recorded) /
            static_cast<double>(with.counts.points));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace hone::search

int main(int argc, char** argv) {
  int generations = 16, rounds = 4;
  std::vector<std::string> tasks;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--generations" && i + 1 < argc) {
      if (!absl::SimpleAtoi(argv[++i], &generations)) return 2;
    } else if (word == "--rounds" && i + 1 < argc) {
      if (!absl::SimpleAtoi(argv[++i], &rounds)) return 2;
    } else {
      tasks.push_back(word);
    }
  }
  if (tasks.empty()) {
    tasks = {"matmul m=1024 n=1024 k=1024", "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
             "depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1", "softmax m=512 n=512",
             "transpose_batch_matmul b=1 s=128 h=12 d=64"};
  }
  std::printf(
      "| task | per candidate | replays/s | programs/s | ratio | last generation | replayed | "
      "recorded |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const std::string& task : tasks) hone::search::EvolutionOf(task, generations, rounds);
}
