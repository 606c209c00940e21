#ifndef HONE_SERVER_COST_MODEL_PUBLISHED_TREEGRU_MODEL_H_
#define HONE_SERVER_COST_MODEL_PUBLISHED_TREEGRU_MODEL_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// AutoTVM's TreeGRU (Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018) on the loop
// tree (feature set "tree": a row per loop, which names its parent): every loop's features become
// an embedding, a gated recurrent unit reads them from the innermost loops outwards with the sum of
// what the loops inside came to, each loop's state is scattered into slots by a softmax, and a line
// over the slots is the score. Learns the order of candidates by the rank loss (rank_loss.h) with
// Adam; a line (calibration.h) makes throughputs of its scores.
//
// Only in builds with HONE_WITH_TORCH; kMakeTreeGruModel is null in the others.
std::unique_ptr<CostModel> MakeTreeGruModel(const CostModelOptions& options);

inline constexpr absl::string_view kTreeGruMissing =
    "it needs libtorch: install libtorch-dev and configure with -DHONE_WITH_TORCH=ON";

#ifdef HONE_WITH_TORCH
inline constexpr auto kMakeTreeGruModel = MakeTreeGruModel;
#else
inline constexpr decltype(&MakeTreeGruModel) kMakeTreeGruModel = nullptr;
#endif

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_PUBLISHED_TREEGRU_MODEL_H_
