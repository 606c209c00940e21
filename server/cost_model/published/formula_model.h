#ifndef HONE_SERVER_COST_MODEL_PUBLISHED_FORMULA_MODEL_H_
#define HONE_SERVER_COST_MODEL_PUBLISHED_FORMULA_MODEL_H_

#include <memory>

#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// The empirical formula of Halide's first automatic scheduler (Mullapudi et al., SIGGRAPH 2016),
// the kind of model that came before learned ones: cost = arithmetic + memory, in operations, with
// both terms from the rows of "analytic" (server/feature/analytic_terms.h says what they count). It
// has nothing to learn but a unit: Update sets the factor that makes throughputs of 1/cost, the
// median over the candidates that ran; the order never changes.
std::unique_ptr<CostModel> MakeFormulaModel(const CostModelOptions& options);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_PUBLISHED_FORMULA_MODEL_H_
