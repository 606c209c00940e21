#include "server/research/lab/presets.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone::lab {
namespace {

// Returns the variant, starting from the results of another set.
Variant After(const char* set, Variant variant) {
  variant.related = set;
  return variant;
}
// Returns the variant, starting only from a model of another set, as in AutoTVM.
Variant WithModelOf(const char* set, Variant variant) {
  variant.related_seeds = false;
  return After(set, std::move(variant));
}

// One entry per preset.
const std::vector<Experiment>& Presets() {
  static const auto* const presets = new std::vector<Experiment>{
      {.name = "rocke",
       .question = "Does Bayesian optimization need fewer trials than evolutionary search?",
       .variants = {{"bayesian-index", "bayesian-index"},
                    {"bayesian", "bayesian"},
                    {"evolutionary", "evolutionary"},
                    {"evolutionary-drafted", "evolutionary-drafted"},
                    {"random", "random", "random"}},
       .baseline = "evolutionary"},
      {.name = "zheng-features",
       .question = "Which features should AutoTVM's trees read (simulated annealing, rank loss)?",
       .variants = {{"knob", "annealing", "xgboost-rank", "knob"},
                    {"itervar", "annealing", "xgboost-rank", "itervar"},
                    {"curve-one", "annealing", "xgboost-rank", "curve-one"},
                    {"curve", "annealing", "xgboost-rank", "curve"},
                    {"curve-fix", "annealing", "xgboost-rank", "curve-fix"},
                    {"curve-fix-reuse", "annealing", "xgboost-rank", "curve-fix-reuse"}},
       .baseline = "curve",
       .sets = {"conv2d_c7", "conv2d_c12"},
       .trials = 128},
      {.name = "zheng-cooling",
       .question = "Which cooling schedule should simulated annealing have, and do restarts help?",
       .variants = {{"linear", "annealing", "xgboost-rank"},
                    {"geometric", "annealing-geometric", "xgboost-rank"},
                    {"adaptive", "annealing-adaptive", "xgboost-rank"},
                    {"restarts", "annealing-restarts", "xgboost-rank"}},
       .baseline = "linear",
       .sets = {"conv2d_c7", "conv2d_c12"},
       .trials = 128},
      {.name = "zheng-transfer",
       .question = "Do 500 results of C12 speed up the search of C7?",
       .variants = {{"itervar", "annealing", "xgboost-rank", "itervar"},
                    WithModelOf("conv2d_c12",
                                {"itervar + model of C12", "annealing", "xgboost-rank", "itervar"}),
                    {"curve-fix", "annealing", "xgboost-rank", "curve-fix"},
                    WithModelOf("conv2d_c12", {"curve-fix + model of C12", "annealing",
                                               "xgboost-rank", "curve-fix"}),
                    {"evolutionary", "evolutionary"},
                    WithModelOf("conv2d_c12", {"evolutionary + model of C12", "evolutionary"}),
                    After("conv2d_c12", {"evolutionary after C12", "evolutionary"}),
                    {"portfolio", "portfolio"},
                    After("conv2d_c12", {"portfolio after C12", "portfolio"})},
       .baseline = "evolutionary",
       .sets = {"conv2d_c7"},
       .trials = 128},
      {.name = "zheng-gpu",
       .question = "Which features should AutoTVM's trees read on its templates for GPUs?",
       .variants = {{"knob", "annealing", "xgboost-rank", "knob"},
                    {"itervar", "annealing", "xgboost-rank", "itervar"},
                    {"curve", "annealing", "xgboost-rank", "curve"},
                    {"curve-fix", "annealing", "xgboost-rank", "curve-fix"},
                    {"curve-fix-reuse", "annealing", "xgboost-rank", "curve-fix-reuse"},
                    {"portfolio", "portfolio"}},
       .baseline = "curve",
       .sets = {"conv2d_c7", "conv2d_c12"},
       .seeds = 3,
       .trials = 1000,
       .space = "templates"},
      {.name = "zheng-gpu-winograd",
       .question = "The same with Winograd's algorithm, which needs a tolerance and stride 1.",
       .variants = {{"itervar", "annealing", "xgboost-rank", "itervar"},
                    {"curve-fix", "annealing", "xgboost-rank", "curve-fix"},
                    {"portfolio", "portfolio"}},
       .baseline = "itervar",
       .sets = {"conv2d_c12"},
       .seeds = 3,
       .trials = 1000,
       .space = "templates",
       .tolerance = 1e-4},
      {.name = "matmul-to-conv2d",
       .question = "Do 500 results of a matrix product speed up the search of convolutions?",
       .variants = {{"evolutionary", "evolutionary"},
                    After("matmul_512", {"evolutionary after matmul", "evolutionary"}),
                    {"portfolio", "portfolio"},
                    After("matmul_512", {"portfolio after matmul", "portfolio"})},
       .baseline = "evolutionary",
       .sets = {"conv2d_14x14x256", "conv2d_1x1_14x14", "conv2d_c7", "conv2d_c12"},
       .trials = 128},
      {.name = "ansor-ablation",
       .question = "What do Ansor's parts contribute: learning, crossover, the large space?",
       .variants = {{"full", "evolutionary"},
                    {"no crossover", "evolutionary-no-crossover"},
                    {"with our draft", "evolutionary-drafted"},
                    {"no fine-tuning", "random", "random"},
                    {.label = "limited space", .strategy = "evolutionary", .limited_space = true}},
       .baseline = "full",
       .trials = 128},
      {.name = "autotvm-tuners",
       .question = "AutoTVM's tuners against each other.",
       .variants = {{"annealing", "annealing", "xgboost-rank"},
                    {"genetic", "genetic"},
                    {"grid", "grid", "random"},
                    {"droplet", "droplet"},
                    {"random", "random", "random"}},
       .baseline = "annealing",
       .trials = 128},
      {.name = "portfolio",
       .question = "Does the portfolio beat evolutionary search?",
       .variants = {{"portfolio", "portfolio"}, {"evolutionary", "evolutionary"}},
       .baseline = "evolutionary"},
      {.name = "all",
       .question = "Every strategy against evolutionary search.",
       .variants = {{"portfolio", "portfolio"},
                    {"evolutionary", "evolutionary"},
                    {"evolutionary-drafted", "evolutionary-drafted"},
                    {"evolutionary-metropolis", "evolutionary-metropolis"},
                    {"bayesian", "bayesian"},
                    {"bayesian-index", "bayesian-index"},
                    {"annealing", "annealing"},
                    {"droplet", "droplet"},
                    {"genetic", "genetic"},
                    {"grid", "grid", "random"},
                    {"random", "random", "random"}},
       .baseline = "evolutionary"},
  };
  return *presets;
}

}  // namespace

absl::StatusOr<Experiment> FindPreset(absl::string_view name) {
  for (const Experiment& preset : Presets()) {
    if (preset.name == name) return preset;
  }
  return absl::NotFoundError(
      absl::StrCat("no preset '", name, "'; there are: ", absl::StrJoin(PresetNames(), ", ")));
}

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const Experiment& preset : Presets()) names.push_back(preset.name);
  return names;
}

}  // namespace hone::lab
