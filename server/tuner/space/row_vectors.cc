#include "server/tuner/space/row_vectors.h"

namespace hone::space {

using schedule::Operand;

void RowVectors::Columns(const Operand& columns, int64_t extent) {
  if (extent <= limits_.lanes) {
    edit_.Add("vectorize", {columns});
    return;
  }
  const std::vector<Operand> parts = edit_.Split(columns, {Width(extent, columns_)});
  edit_.Add("vectorize", {parts[1]});
}

void RowVectors::Lanes(const Operand& block, const Operand& reduction, int64_t extent, int lane) {
  const std::vector<Operand> parts = edit_.Split(reduction, {LanesOf(extent)});
  edit_.Add("rfactor", {block, parts[1]});
  edit_.Add("vectorize", {parts[1]});
  const std::vector<Operand> combining = edit_.Loops(block, lane + 1);
  edit_.Add("vectorize", {combining.back()});
}

Operand RowVectors::Width(int64_t extent, Widths& widths) {
  for (const auto& [of, width] : widths) {
    if (of == extent) return width;
  }
  const Operand width = edit_.Sample(RowWidths(limits_, extent));
  widths.emplace_back(extent, width);
  return width;
}

}  // namespace hone::space
