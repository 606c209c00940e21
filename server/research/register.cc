#include "server/research/register.h"

#include <initializer_list>
#include <memory>
#include <utility>

#include "server/research/feature/feature_sets.h"
#include "server/research/model/models.h"
#include "server/research/space/ansor_space.h"
#include "server/research/strategy/strategies.h"
#include "server/research/template/template.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/feature/feature_sets.h"
#include "server/tuner/search/strategies.h"
#include "server/tuner/space/maker.h"

namespace hone::research {
namespace {

// Adds a strategy of which there are variants.
template <typename Options>
void AddVariant(std::unique_ptr<search::SearchStrategy> (*make)(search::SearchContext,
                                                                const Options&),
                const Options& options) {
  search::RegisterSearchStrategy({options.name, [make, options](search::SearchContext context) {
                                    return make(std::move(context), options);
                                  }});
}

void AddStrategies() {
  using Cooling = search::AnnealingOptions::Cooling;
  using Selection = search::AnnealingOptions::Selection;
  using Acquisition = search::BayesianIndexOptions::Acquisition;
  for (const search::AnnealingOptions& options : std::initializer_list<search::AnnealingOptions>{
           {},
           {.name = "annealing-adaptive", .cooling = Cooling::kAdaptive},
           {.name = "annealing-geometric", .cooling = Cooling::kGeometric},
           {.name = "annealing-restarts", .restarts = 4},
           {.name = "annealing-diverse", .selection = Selection::kDiverse},
           {.name = "adaptive", .selection = Selection::kClusters}}) {
    AddVariant(search::MakeAnnealingSearch, options);
  }
  for (const search::BayesianIndexOptions& options :
       std::initializer_list<search::BayesianIndexOptions>{
           {},
           {.name = "bayesian-index-ei", .acquisition = Acquisition::kExpectedImprovement},
           {.name = "bayesian-index-poi", .acquisition = Acquisition::kProbabilityOfImprovement},
           {.name = "bayesian-index-reduced", .reduces_domain = true}}) {
    AddVariant(search::MakeBayesianIndexSearch, options);
  }
  // Variants of the product's strategy.
  AddVariant(search::MakeEvolutionarySearch,
             {.name = "evolutionary-metropolis", .temperature = 0.05});
  AddVariant(search::MakeEvolutionarySearch, {.name = "evolutionary-no-crossover", .mutation = 1});
  AddVariant(search::MakeEvolutionarySearch, {.name = "evolutionary-filtered",
                                              .draft = true,
                                              .filter = [](const search::SearchContext& context) {
                                                return search::MakeScheduleFilter(context,
                                                                                  "tlp-fast");
                                              }});
  AddVariant(search::MakeBeamSearch, {});
  AddVariant(search::MakeBeamSearch,
             {.name = "beam-sampled", .value = search::BeamOptions::Value::kSampled});
  AddVariant(search::MakeBeamSearch,
             {.name = "beam-learned", .value = search::BeamOptions::Value::kLearned});
  AddVariant(search::MakeBeamSearch, {.name = "beam-state-value",
                                      .value = search::BeamOptions::Value::kLearned,
                                      .value_model = "state-value"});
  AddVariant(search::MakeQLearningSearch, {});
  search::RegisterSearchStrategy({"ansor", search::MakeAnsorSearch});
  search::RegisterSearchStrategy({"draft", search::MakeDraftSearch});
  search::RegisterSearchStrategy({"genetic", search::MakeGeneticSearch});
  search::RegisterSearchStrategy({"grid", search::MakeGridSearch});
}

void AddModels() {
  for (const cost_model::ModelKind* kind :
       {&cost_model::kFormulaModel, &cost_model::kGpModel, &cost_model::kLoopTreeModel,
        &cost_model::kMlpModel, &cost_model::kMlpTenSetModel, &cost_model::kMtlTlpModel,
        &cost_model::kStateValueModel, &cost_model::kTlpModel, &cost_model::kTlpFastModel,
        &cost_model::kTlpLstmModel, &cost_model::kTlpMseModel, &cost_model::kTlpPublishedModel,
        &cost_model::kTreeGruModel, &cost_model::kXgboostBagModel,
        &cost_model::kXgboostRankModel}) {
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
  feature::RegisterFeatureSet(
      feature::MakePrimitiveFeatures("primitives-drawn", {.sequence = 64, .draws = true}));
}

}  // namespace

void Register() {
  static const bool registered = [] {
    AddStrategies();
    AddModels();
    AddFeatureSets();
    space::RegisterSpaceMaker(space::kTemplateMaker);
    space::RegisterSpaceMaker(space::kAnsorMaker);
    return true;
  }();
  static_cast<void>(registered);
}

}  // namespace hone::research
