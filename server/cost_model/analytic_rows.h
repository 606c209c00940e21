#ifndef HONE_SERVER_COST_MODEL_ANALYTIC_ROWS_H_
#define HONE_SERVER_COST_MODEL_ANALYTIC_ROWS_H_

namespace hone::cost_model {

// The columns of feature set "analytic" that models read by position; a test holds them equal to
// its names. Of the same scale: log2(x + 1).
inline constexpr int kAnalyticColumns = 24;
inline constexpr int kDraftColumn = 12;
inline constexpr int kFormulaArithmeticColumn = 22;
inline constexpr int kFormulaMemoryColumn = 23;

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_ANALYTIC_ROWS_H_
