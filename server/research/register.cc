#include "server/research/register.h"

#include <utility>

#include "server/research/feature/feature_sets.h"
#include "server/research/model/models.h"
#include "server/research/strategy/strategies.h"
#include "server/research/template/template.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/feature/feature_sets.h"
#include "server/tuner/search/strategies.h"
#include "server/tuner/space/maker.h"

namespace hone::research {
namespace {

void AddAnnealing(const search::AnnealingOptions& options) {
  search::RegisterSearchStrategy({options.name, [options](search::SearchContext context) {
                                    return search::MakeAnnealingSearch(std::move(context), options);
                                  }});
}

// Variants of the product's strategy.
void AddEvolutionary(const search::EvolutionaryOptions& options) {
  search::RegisterSearchStrategy({options.name, [options](search::SearchContext context) {
                                    return search::MakeEvolutionarySearch(std::move(context),
                                                                          options);
                                  }});
}

void AddStrategies() {
  using Cooling = search::AnnealingOptions::Cooling;
  AddAnnealing({});
  AddAnnealing({.name = "annealing-adaptive", .cooling = Cooling::kAdaptive});
  AddAnnealing({.name = "annealing-geometric", .cooling = Cooling::kGeometric});
  AddAnnealing({.name = "annealing-restarts", .restarts = 4});
  AddEvolutionary({.name = "evolutionary-metropolis", .temperature = 0.05});
  AddEvolutionary({.name = "evolutionary-no-crossover", .mutation = 1});
  AddEvolutionary({.name = "evolutionary-filtered",
                   .draft = true,
                   .filter = [](const search::SearchContext& context) {
                     return search::MakeScheduleFilter(context, "tlp-fast");
                   }});
  search::RegisterSearchStrategy({"bayesian-index", search::MakeBayesianIndexSearch});
  search::RegisterSearchStrategy({"draft", search::MakeDraftSearch});
  search::RegisterSearchStrategy({"genetic", search::MakeGeneticSearch});
  search::RegisterSearchStrategy({"grid", search::MakeGridSearch});
}

void AddModels() {
  for (const cost_model::ModelKind* kind :
       {&cost_model::kFormulaModel, &cost_model::kGpModel, &cost_model::kLoopTreeModel,
        &cost_model::kMlpModel, &cost_model::kMlpTenSetModel, &cost_model::kMtlTlpModel,
        &cost_model::kTlpModel, &cost_model::kTlpFastModel, &cost_model::kTlpLstmModel,
        &cost_model::kTlpMseModel, &cost_model::kTlpPublishedModel, &cost_model::kTreeGruModel,
        &cost_model::kXgboostBagModel, &cost_model::kXgboostRankModel}) {
    cost_model::RegisterCostModel(*kind);
  }
}

void AddFeatureSets() {
  using Curve = feature::CurveOptions;
  feature::RegisterFeatureSet(feature::MakeKnobFeatures());
  feature::RegisterFeatureSet(feature::MakeItervarFeatures());
  feature::RegisterFeatureSet(feature::MakeCurveFeatures("curve", {}));  // AutoTVM's
  // A fault of early versions.
  feature::RegisterFeatureSet(feature::MakeCurveFeatures("curve-one", {.samples = 1}));
  // Zheng's, and his best ablation.
  feature::RegisterFeatureSet(feature::MakeCurveFeatures("curve-fix", {.samples = 30}));
  feature::RegisterFeatureSet(feature::MakeCurveFeatures(
      "curve-fix-reuse",
      {.samples = 30, .relations = Curve::kCountToReuse | Curve::kReuseToCount}));
  feature::RegisterFeatureSet(feature::MakeTreeFeatures());
  feature::RegisterFeatureSet(feature::MakePrimitiveFeatures("primitives", {}));
  feature::RegisterFeatureSet(feature::MakePrimitiveFeatures(
      "primitives-25x22", {.sequence = 25, .arguments = 11, .pad = true}));  // TLP's on CPUs
}

}  // namespace

void Register() {
  static const bool registered = [] {
    AddStrategies();
    AddModels();
    AddFeatureSets();
    space::RegisterSpaceMaker(space::kTemplateMaker);
    return true;
  }();
  static_cast<void>(registered);
}

}  // namespace hone::research
