#ifndef HONE_SERVER_COST_MODEL_COLUMN_SCALER_H_
#define HONE_SERVER_COST_MODEL_COLUMN_SCALER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/cost_model/byte_io.h"

namespace hone::cost_model {

// Brings rows to mean 0 and deviation 1 per column and leaves out columns that are constant in the
// training rows: most models need it, trees do not. Values far outside of what was seen are
// clipped, so that a model extrapolates to a bounded distance.
class ColumnScaler {
 public:
  static constexpr float kLargest = 6;  // deviations

  // Of no columns.
  ColumnScaler() = default;
  // REQUIRES columns ≥ 1 and at least one row, all values finite.
  static ColumnScaler Fit(absl::Span<const float> rows, int columns);

  int columns() const { return columns_; }                          // of a row
  int kept() const { return static_cast<int>(positions_.size()); }  // of a scaled row
  // The position in a scaled row of a column; -1: left out.
  int PositionOf(int column) const;
  // The deviation of the column at a position of a scaled row.
  double DeviationAt(int position) const { return 1.0 / scales_[position]; }

  // REQUIRES row.size() == columns(), out.size() == kept().
  void Apply(absl::Span<const float> row, absl::Span<float> out) const;

  // The scaled mean of the rows of every candidate: one vector for a program of any number of
  // statements. kept() values per candidate.
  std::vector<float> PoolMeans(absl::Span<const float> rows,
                               absl::Span<const int32_t> row_begin) const;

  // The binary form inside a model file, and back. InvalidArgument: truncated or contradictory.
  void Serialize(ByteWriter& writer) const;
  static absl::StatusOr<ColumnScaler> Parse(ByteReader& reader);

 private:
  int columns_ = 0;
  std::vector<int32_t> positions_;     // of the kept columns, ascending
  std::vector<float> means_, scales_;  // what to subtract, then to multiply by
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_COLUMN_SCALER_H_
