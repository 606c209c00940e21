#ifndef HONE_SERVER_TUNER_COST_MODEL_MODELS_H_
#define HONE_SERVER_TUNER_COST_MODEL_MODELS_H_

#include "server/tuner/cost_model/model_kind.h"

// The kinds of the product; registry.cc lists them. Those of the literature are in
// server/research/model.
namespace hone::cost_model {

// Adds a kind to the registry, after the others. REQUIRES: the registry has no kind of that name,
// and no other thread uses it.
void RegisterCostModel(const ModelKind& kind);

// The columns of feature set "analytic" that models read by position, on the scale log2(x + 1). A
// test compares them with the names of the columns.
inline constexpr int kAnalyticColumns = 24;
inline constexpr int kDraftColumn = 12;
inline constexpr int kFormulaArithmeticColumn = 22;
inline constexpr int kFormulaMemoryColumn = 23;

// The number of columns of feature set "residual", the last of which are those of "draft"
// (draft_weights.h).
inline constexpr int kResidualColumns = 198;

// The baseline that every learned model must beat: scores drawn uniformly from [0, 1). A score is a
// function of the seed, the number of candidates in the last Update, the candidate's position in
// the call, and its rows if it has any. The scores therefore change with every round of tuning, and
// replaying the calls repeats them.
extern const ModelKind kRandomModel;

// Untrained, the model is the draft: it returns 1 / cycles, as the analytic features estimate them.
// Trained, it predicts log2 throughput as a linear combination of these features, which are
// logarithms; this is a product of powers of the machine model's terms. The fit minimizes Huber's
// loss, which limits the weight of disturbed measurements, and is pulled towards the prior that the
// estimate is right. It is thus useful after a few candidates and stays close to the estimate.
// Reads "analytic" only.
extern const ModelKind kAnalyticModel;

// The estimate of a program's cycles with factors for its parts (draft_weights.h), which a training
// fits to the results of all tasks of a target. The score is 1 / cycles. Untrained, it is the draft
// with the constants of the target. Reads "draft" only.
extern const ModelKind kDraftModel;

// Learns what the draft does not know: trees predict the logarithm of the factor by which a
// statement takes longer than the fitted draft says. The score of a program is 1 / the sum of its
// statements' corrected cycles. Trained on all tasks of a target, each relative to its mean. Reads
// "residual" only.
extern const ModelKind kResidualModel;

// Ansor's model: gradient-boosted trees on the rows of statement features. XGBoost trains them with
// the pack-sum objective (pack_objective.h), and FlatForest evaluates them. The trees up to the
// round with the least training error are kept.
extern const ModelKind kXgboostModel;

// AutoTVM's shallow trees (Chen et al., NeurIPS 2018) with the rank objective: learns which of two
// candidates is better, but not by how much. Calibration (linear_fit.h) converts its scores to
// throughputs. min_child_weight is 0 instead of AutoTVM's 1, because the hessian of a correctly
// placed candidate approaches 0.
extern const ModelKind kXgboostRankModel;

// Ansor's trees with a spread, in about the time of one forest: a bag of four small forests
// (Breiman, "Bagging predictors", 1996). Each is trained on a random 63 % of the candidates, the
// share of distinct elements in a bootstrap sample. The prediction is the mean of the four. The
// squared spread is the variance among them plus a noise term, because forests with nearly the same
// training data agree even where the labels are noisy. The noise is the mean squared error on
// left-out candidates beyond that variance.
extern const ModelKind kXgboostBagModel;

// An exact Gaussian process (gaussian_process.h) from a candidate's pooled rows (the mean of each
// standardized column) to its throughput. The spread is the posterior deviation, scaled according
// to the errors on left-out candidates (spread_scale.h). Deterministic; does not use the seed.
extern const ModelKind kGpModel;

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_MODELS_H_
