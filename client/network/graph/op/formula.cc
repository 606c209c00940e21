#include "client/network/graph/op/formula.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"

namespace hone::graph {

std::string Literal(ir::DType dtype, ir::Scalar value) {
  const std::string number = !ir::IsFloat(dtype)        ? absl::StrCat(value.whole())
                             : std::isnan(value.real()) ? "nan"
                                                        : StageWriter::Number(value.real());
  return absl::StrCat(ir::DTypeName(dtype), "(", number, ")");
}

std::string Convert(ir::DType from, ir::DType to, std::string value) {
  return from == to ? value : absl::StrCat(ir::DTypeName(to), "(", value, ")");
}

std::string WithoutNaN(ir::DType dtype, const std::string& value, absl::string_view instead) {
  if (!ir::IsFloat(dtype)) return value;
  return absl::Substitute("select($0 == $0, $0, $1)", value, instead);
}

std::string Affine(const std::vector<std::pair<int64_t, std::string>>& terms, int64_t constant) {
  std::string text;
  for (const auto& [factor, axis] : terms) {
    if (factor == 0) continue;
    absl::StrAppend(&text, factor < 0 ? (text.empty() ? "-" : " - ") : (text.empty() ? "" : " + "));
    if (std::abs(factor) != 1) absl::StrAppend(&text, std::abs(factor), "*");
    absl::StrAppend(&text, axis);
  }
  if (text.empty()) return absl::StrCat(constant);
  if (constant != 0) absl::StrAppend(&text, constant < 0 ? " - " : " + ", std::abs(constant));
  return text;
}

std::string Offset(absl::string_view axis, int64_t constant) {
  return Affine({{1, std::string(axis)}}, constant);
}

std::string Element(absl::string_view tensor, const std::vector<std::string>& indices) {
  return absl::StrCat(tensor, "[", absl::StrJoin(indices, ", "), "]");
}

std::string Guarded(std::string value, const std::vector<std::string>& guards,
                    absl::string_view otherwise) {
  if (guards.empty()) return value;
  return absl::StrCat("(", value, " where ", absl::StrJoin(guards, ", "), " else ", otherwise, ")");
}

std::string Reduction(absl::string_view reducer, const std::vector<std::string>& axes,
                      const std::vector<int64_t>& extents, const std::vector<std::string>& guards) {
  if (axes.empty()) return absl::StrCat(reducer, "(k: 1) ");
  return absl::StrCat(reducer, "(", StageWriter::Domain(axes, extents),
                      guards.empty() ? "" : " where ", absl::StrJoin(guards, ", "), ") ");
}

std::string First(const NodeView& node, StageWriter& writer, int input) {
  return writer.In(input, std::vector<std::string>(std::max<int64_t>(1, node.Rank(input)), "0"));
}

std::string FirstAsNumber(const NodeView& node, StageWriter& writer, int input) {
  if (!node.IsConstant(input)) return First(node, writer, input);
  return Literal(node.Type(input).dtype, node.Elements(input)->front());
}

}  // namespace hone::graph
