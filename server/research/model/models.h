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

// The networks (network_predictor.h) read standardized rows, and Adam trains them, if nothing else
// is said with the rank loss (rank_loss.h) among candidates of one task. Calibration
// (calibration.h) converts their scores to throughputs. Deterministic: the seed determines the
// initial weights and the order of the candidates. They can learn a residual (Labels::offset).

// TenSet's network (Zheng et al., NeurIPS 2021): an encoder of two layers for each row, the sum
// over a candidate's rows, two residual layers, and one output; 64 wide, or 256 as published.
extern const ModelKind kMlpModel, kMlpTenSetModel;

// TLP (Zhai et al., ASPLOS 2023) on the sequence of primitives (feature set "primitives"): an
// encoder of each primitive, self-attention with a residual connection, residual layers, and a
// score for each primitive; a candidate's score is their sum.
//   tlp            our sizes: 48 wide, four heads, a layer norm after the attention
//   tlp-fast       16 wide, one head; the primitives are summed before the score. A pre-filter
//   tlp-lstm       with an LSTM instead of the attention
//   tlp-mse        tlp with the squared error of the throughput as its loss
//   tlp-published  the published sizes, sequence and loss: encoder 64, 128, 256, 256, eight heads,
//                  head 256, 128, 64, candidates of all tasks compared, but fewer steps
//   mtl-tlp        tlp with a head for each target (Labels::targets). A candidate trains only the
//                  head of its own target; predictions are those of the first head
extern const ModelKind kTlpModel, kTlpFastModel, kTlpLstmModel, kTlpMseModel, kTlpPublishedModel,
    kMtlTlpModel;

// The value of a partial schedule, as in Steiner et al. (MLSys 2021): the best throughput that any
// of its completions reaches. An LSTM runs over the primitives so far, and its last state gives the
// value, which is that of the whole schedule if no decision is open. It reads 64 primitives, which
// less than one schedule in twenty exceeds: those that differ only in later decisions have one
// value. Examples are the measured schedules and three random prefixes of each; the label of a
// prefix is the best throughput of all results of the task that begin with it. `beam-state-value`
// searches with it.
extern const ModelKind kStateValueModel;

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
// over slots, and a linear function of the slots is the score.
extern const ModelKind kTreeGruModel;

// The recursive network of TIRAMISU's cost model (Baghdadi et al., MLSys 2021) on the same rows:
// the state of a loop follows from its embedded features and from an LSTM over the states of the
// loops directly inside it, in order. The sum of the outermost loops' states gives the score. 48
// wide, instead of 600 to 180.
extern const ModelKind kLoopTreeModel;

}  // namespace hone::cost_model

#endif  // HONE_SERVER_RESEARCH_MODEL_MODELS_H_
