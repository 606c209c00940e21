#ifndef HONE_SERVER_TUNER_COST_MODEL_MODELS_H_
#define HONE_SERVER_TUNER_COST_MODEL_MODELS_H_

#include "server/tuner/cost_model/model_kind.h"

// The kinds of the product; registry.cc lists them. Those of the literature are in
// server/research/model.
namespace hone::cost_model {

// Adds a kind to the registry, after the others. REQUIRES: the registry has no kind of that name,
// and no other thread uses it.
void RegisterCostModel(const ModelKind& kind);

// The number of columns of feature set "residual", the last of which are those of "draft"
// (draft_weights.h).
inline constexpr int kResidualColumns = 198;

// The baseline that every learned model must beat: scores drawn uniformly from [0, 1). A score is a
// function of the seed, the number of candidates in the last Update, the candidate's position in
// the call, and its rows if it has any. The scores therefore change with every round of tuning, and
// replaying the calls repeats them.
extern const ModelKind kRandomModel;

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

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_MODELS_H_
