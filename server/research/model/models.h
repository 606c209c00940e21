#ifndef HONE_SERVER_RESEARCH_MODEL_MODELS_H_
#define HONE_SERVER_RESEARCH_MODEL_MODELS_H_

#include "server/tuner/cost_model/model_kind.h"

// Cost models of the literature. Each is defined in <name>_model.cc.
namespace hone::cost_model {

// The empirical formula of Halide's first automatic scheduler (Mullapudi et al., SIGGRAPH 2016), an
// example of the models that preceded learned ones: cost = arithmetic + memory, in operations. Both
// terms come from the rows of "analytic" (see server/tuner/feature/analytic_features.cc). It learns
// only a scale factor: Update sets the factor that converts 1/cost to throughput, as the median
// over the candidates that ran. The order never changes.
extern const ModelKind kFormulaModel;

// TenSet's model (mlp_network.h): standardized rows, trained by Adam with the rank loss
// (rank_loss.h). Calibration (linear_fit.h) converts its scores to throughputs. Deterministic: the
// seed determines the initial weights and the order of the candidates.
extern const ModelKind kMlpModel;

// AutoTVM's TreeGRU (Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018) on the loop
// tree (feature set "tree": one row per loop, with the number of its parent). Each loop's features
// are embedded. A gated recurrent unit processes the loops from the innermost outwards; its state
// is the sum of the states of the loops directly inside. A softmax distributes each loop's state
// over slots, and a linear function of the slots is the score. Trained by Adam with the rank loss
// (rank_loss.h). Calibration (linear_fit.h) converts its scores to throughputs.
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
