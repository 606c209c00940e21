#ifndef HONE_SERVER_COST_MODEL_MODELS_H_
#define HONE_SERVER_COST_MODEL_MODELS_H_

#include "server/cost_model/model_kind.h"

// The registered kinds, each of <name>_model.cc.
namespace hone::cost_model {

// The columns of feature set "analytic" that models read by position; a test holds them equal to
// its names. Of the same scale: log2(x + 1).
inline constexpr int kAnalyticColumns = 24;
inline constexpr int kDraftColumn = 12;
inline constexpr int kFormulaArithmeticColumn = 22;
inline constexpr int kFormulaMemoryColumn = 23;

// The baseline that every learned model must beat: scores drawn uniformly from [0, 1). They are a
// pure function of the seed, the number of candidates of the last Update, a candidate's position in
// the call and its rows (if there are any): they change with every round of tuning, and replaying
// the calls repeats them.
extern const ModelKind kRandomModel;

// Before it has seen anything, the model is the draft: it answers 1 / the cycles that the analytic
// features estimate. Trained, it answers log2 throughput as a linear combination of these features,
// which are logarithms: a product of powers of what a machine model computes. Fitted by least
// squares with Huber's loss, so that a disturbed measurement weighs little, and pulled towards the
// prior that the estimate is right: good from the first few candidates, and never far from what can
// be computed. Reads "analytic" only.
extern const ModelKind kAnalyticModel;

// Ansor's model: gradient-boosted trees over the rows of statement features, trained with the
// pack-sum objective (pack_objective.h) in XGBoost, evaluated in a flat forest (flat_forest.h). The
// model of the round with the least training error stays.
extern const ModelKind kXgboostModel;

// AutoTVM's shallow trees (Chen et al., NeurIPS 2018) with the rank objective instead: learns which
// of two candidates is better, and nothing of how much. A line (calibration.h) makes throughputs of
// its scores. min_child_weight is 0 and not AutoTVM's 1, because the hessian of a candidate that
// has its place goes to 0.
extern const ModelKind kXgboostRankModel;

// Ansor's trees with a spread, for about the time of one forest: a bag of four short ones (Breiman,
// "Bagging predictors", 1996), each grown on a random 63 % of the candidates, which is what a
// bootstrap sample has of different ones. The mean is theirs. The spread is the deviation among
// them and, added in square, what the errors on left-out candidates show beyond it: agreement of
// trees that saw nearly the same says little about noise.
extern const ModelKind kXgboostBagModel;

// An exact Gaussian process (gaussian_process.h) from a candidate's pooled rows (the mean of each
// standardized column) to its throughput; a model with a spread, the posterior deviation scaled by
// what the process gets wrong where it is not shown (spread_scale.h). Deterministic without a seed.
extern const ModelKind kGpModel;

// Those of published/:

// The empirical formula of Halide's first automatic scheduler (Mullapudi et al., SIGGRAPH 2016),
// the kind of model that came before learned ones: cost = arithmetic + memory, in operations, with
// both terms from the rows of "analytic" (server/feature/analytic_terms.h says what they count). It
// has nothing to learn but a unit: Update sets the factor that makes throughputs of 1/cost, the
// median over the candidates that ran; the order never changes.
extern const ModelKind kFormulaModel;

// TenSet's model (mlp_network.h) with the rank loss (rank_loss.h): standardized rows, Adam, a line
// (calibration.h) that makes throughputs of the scores. Deterministic: the seed draws the weights
// and the order of the candidates.
extern const ModelKind kMlpModel;

// AutoTVM's TreeGRU (Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018) on the loop
// tree (feature set "tree": a row per loop, which names its parent): every loop's features become
// an embedding, a gated recurrent unit reads them from the innermost loops outwards with the sum of
// what the loops inside came to, each loop's state is scattered into slots by a softmax, and a line
// over the slots is the score. Learns the order of candidates by the rank loss (rank_loss.h) with
// Adam; a line (calibration.h) makes throughputs of its scores.
#ifdef HONE_WITH_TORCH
extern const ModelKind kTreeGruModel;
#else
inline constexpr ModelKind kTreeGruModel = {
    .name = "treegru",
    .feature_set = "tree",
    .any_features = false,
    .missing = "it needs libtorch: install libtorch-dev and configure with -DHONE_WITH_TORCH=ON"};
#endif

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_MODELS_H_
