#include "server/research/model/column_scaler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::cost_model {
namespace {

// Deviations below this, relative to the mean, are rounding errors.
constexpr double kConstant = 1e-5;

}  // namespace

ColumnScaler ColumnScaler::Fit(absl::Span<const float> rows, int columns) {
  ColumnScaler scaler;
  scaler.columns_ = columns;
  const size_t count = rows.size() / columns;
  std::vector<double> sums(columns, 0.0), squares(columns, 0.0);
  for (size_t r = 0; r < count; ++r) {
    for (int c = 0; c < columns; ++c) sums[c] += rows[r * columns + c];
  }
  for (double& sum : sums) sum /= static_cast<double>(count);
  for (size_t r = 0; r < count; ++r) {
    for (int c = 0; c < columns; ++c) {
      const double difference = rows[r * columns + c] - sums[c];
      squares[c] += difference * difference;
    }
  }
  for (int c = 0; c < columns; ++c) {
    const double deviation = std::sqrt(squares[c] / static_cast<double>(count));
    if (deviation <= kConstant * std::max(1.0, std::abs(sums[c]))) continue;
    const auto scale = static_cast<float>(1 / deviation);
    const auto mean = static_cast<float>(sums[c]);
    if (!std::isfinite(mean) || !std::isnormal(scale)) continue;  // overflow or underflow of float
    scaler.positions_.push_back(c);
    scaler.means_.push_back(mean);
    scaler.scales_.push_back(scale);
  }
  return scaler;
}

int ColumnScaler::PositionOf(int column) const {
  const auto found = absl::c_lower_bound(positions_, column);
  if (found == positions_.end() || *found != column) return -1;
  return static_cast<int>(found - positions_.begin());
}

void ColumnScaler::Apply(absl::Span<const float> row, absl::Span<float> out) const {
  for (size_t i = 0; i < positions_.size(); ++i)
    out[i] = std::clamp((row[positions_[i]] - means_[i]) * scales_[i], -kLargest, kLargest);
}

std::vector<float> ColumnScaler::PoolMeans(absl::Span<const float> rows,
                                           absl::Span<const int32_t> row_begin) const {
  const size_t candidates = row_begin.size() - 1, width = positions_.size();
  std::vector<float> pooled(candidates * width, 0.0f), scaled(width);
  for (size_t i = 0; i < candidates; ++i) {
    float* out = pooled.data() + i * width;
    const int32_t begin = row_begin[i], end = row_begin[i + 1];
    for (int32_t r = begin; r < end; ++r) {
      Apply(rows.subspan(static_cast<size_t>(r) * columns_, columns_), absl::MakeSpan(scaled));
      for (size_t c = 0; c < width; ++c) out[c] += scaled[c] / static_cast<float>(end - begin);
    }
  }
  return pooled;
}

void ColumnScaler::Serialize(ByteWriter& writer) const {
  writer.Add(columns_, static_cast<uint32_t>(positions_.size()));
  for (size_t i = 0; i < positions_.size(); ++i) writer.Add(positions_[i], means_[i], scales_[i]);
}

absl::StatusOr<ColumnScaler> ColumnScaler::Parse(ByteReader& reader) {
  ColumnScaler scaler;
  uint32_t columns = 0, kept = 0;
  HONE_RETURN_IF_ERROR(reader.Read(columns, kept));
  if (kept > columns || columns > (1u << 24))
    return absl::InvalidArgumentError(
        absl::StrCat("cannot scale ", kept, " of ", columns, " columns"));
  scaler.columns_ = static_cast<int>(columns);
  int32_t before = -1;
  for (uint32_t i = 0; i < kept; ++i) {
    int32_t& position = scaler.positions_.emplace_back();
    float &mean = scaler.means_.emplace_back(), &scale = scaler.scales_.emplace_back();
    HONE_RETURN_IF_ERROR(reader.Read(position, mean, scale));
    if (position >= scaler.columns_ || position <= before || !std::isfinite(mean) ||
        !std::isfinite(scale)) {
      return absl::InvalidArgumentError(absl::StrCat("scaled column ", i, " is not valid"));
    }
    before = position;
  }
  return scaler;
}

}  // namespace hone::cost_model
