#ifndef HONE_SERVER_RESEARCH_MODEL_MODELS_H_
#define HONE_SERVER_RESEARCH_MODEL_MODELS_H_

#include "server/tuner/cost_model/model_kind.h"

// Cost models of the literature, and those that no strategy of the product uses. Each is defined in
// <name>_model.cc.
namespace hone::cost_model {

// The columns of feature set "analytic" that the formula reads, on the scale log2(x + 1). A test
// compares them with the names of the columns.
inline constexpr int kAnalyticColumns = 24;
inline constexpr int kFormulaArithmeticColumn = 22;
inline constexpr int kFormulaMemoryColumn = 23;

// The empirical formula of Halide's first automatic scheduler (Mullapudi et al., SIGGRAPH 2016), an
// example of the models that preceded learned ones: cost = arithmetic + memory, in operations. Both
// terms come from the rows of "analytic" (see server/tuner/feature/analytic_features.cc). It learns
// only a scale factor: Update sets the factor that converts 1/cost to throughput, as the median
// over the candidates that ran. The order never changes.
extern const ModelKind kFormulaModel;

// TenSet's model (mlp_network.h): standardized rows, trained by Adam with the rank loss
// (rank_loss.h). Calibration (calibration.h) converts its scores to throughputs. Deterministic: the
// seed determines the initial weights and the order of the candidates.
extern const ModelKind kMlpModel;

// AutoTVM's shallow trees (Chen et al., NeurIPS 2018) with the rank objective: learns which of two
// candidates is better, but not by how much. Training ends when the average recall of the 64 best
// candidates no longer rises (metric.h). Calibration (calibration.h) converts its scores to
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

// AutoTVM's TreeGRU (Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018) on the loop
// tree (feature set "tree": one row per loop, with the number of its parent). Each loop's features
// are embedded. A gated recurrent unit processes the loops from the innermost outwards; its state
// is the sum of the states of the loops directly inside. A softmax distributes each loop's state
// over slots, and a linear function of the slots is the score. Trained by Adam with the rank loss
// (rank_loss.h). Calibration (calibration.h) converts its scores to throughputs.
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

#endif  // HONE_SERVER_RESEARCH_MODEL_MODELS_H_
