#ifndef HONE_SERVER_RESEARCH_MODEL_COLUMN_SCALER_H_
#define HONE_SERVER_RESEARCH_MODEL_COLUMN_SCALER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/tuner/cost_model/byte_io.h"

namespace hone::cost_model {

// Scales each column to mean 0 and standard deviation 1, and removes columns that are constant in
// the training rows. Most models need this; trees do not. Values far outside the training range are
// clipped, which limits how far a model extrapolates.
class ColumnScaler {
 public:
  static constexpr float kLargest = 6;  // deviations

  // A scaler without columns.
  ColumnScaler() = default;
  // REQUIRES columns ≥ 1 and at least one row, all values finite.
  static ColumnScaler Fit(absl::Span<const float> rows, int columns);

  int columns() const { return columns_; }                          // in a row
  int kept() const { return static_cast<int>(positions_.size()); }  // in a scaled row
  // Returns a column's position in a scaled row; -1: the column is removed.
  int PositionOf(int column) const;
  // Returns the deviation of the column at this position of a scaled row.
  double DeviationAt(int position) const { return 1.0 / scales_[position]; }

  // REQUIRES row.size() == columns(), out.size() == kept().
  void Apply(absl::Span<const float> row, absl::Span<float> out) const;

  // Returns the scaled mean of each candidate's rows, kept() values per candidate. It has the same
  // size for any number of statements.
  std::vector<float> PoolMeans(absl::Span<const float> rows,
                               absl::Span<const int32_t> row_begin) const;

  // Convert to and from the binary form inside a model file. InvalidArgument: truncated or
  // inconsistent.
  void Serialize(ByteWriter& writer) const;
  static absl::StatusOr<ColumnScaler> Parse(ByteReader& reader);

 private:
  int columns_ = 0;
  std::vector<int32_t> positions_;     // of the kept columns, ascending
  std::vector<float> means_, scales_;  // scaled = (value - mean) · scale
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_RESEARCH_MODEL_COLUMN_SCALER_H_
