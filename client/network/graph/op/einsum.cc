#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using Labels = std::vector<std::string>;

// An equation such as "bij,bjk->bik". A label is a letter, or a number for a dimension of "...",
// counted from the last one.
struct Equation {
  std::vector<Labels> operands;
  Labels result;
  std::map<std::string, int64_t> extents;

  static absl::StatusOr<Equation> Of(const NodeView& node);
};

absl::StatusOr<Labels> ParseLabels(const NodeView& node, absl::string_view text, int64_t ellipsis) {
  Labels labels;
  while (!text.empty()) {
    if (absl::ConsumePrefix(&text, "...")) {
      for (int64_t d = ellipsis; d > 0; --d) labels.push_back(absl::StrCat(d));
      continue;
    }
    const char letter = text.front();
    text.remove_prefix(1);
    if (std::isspace(static_cast<unsigned char>(letter)) != 0) continue;
    if (!absl::ascii_isalpha(static_cast<unsigned char>(letter))) {
      return node.InvalidError(
          absl::StrCat("the equation contains '", std::string(1, letter), "'"));
    }
    labels.push_back(std::string(1, letter));
  }
  return labels;
}

absl::StatusOr<Equation> Equation::Of(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const std::string text, node.String("equation", ""));
  const std::pair<std::string, std::string> sides = absl::StrSplit(text, absl::MaxSplits("->", 1));
  const std::vector<std::string> terms = absl::StrSplit(sides.first, ',');
  if (terms.size() != static_cast<size_t>(node.inputs())) {
    return node.InvalidError(absl::StrCat("the equation '", text, "' has ", terms.size(),
                                          " operands, the node ", node.inputs()));
  }
  Equation equation;
  int64_t ellipsis = 0;
  std::map<std::string, int> uses;
  for (int i = 0; i < node.inputs(); ++i) {
    if (!node.Has(i)) return node.InvalidError(absl::StrCat("input ", i, " is missing"));
    HONE_ASSIGN_OR_RETURN(const Labels letters, ParseLabels(node, terms[i], 0));
    const bool dots = absl::StrContains(terms[i], "...");
    const int64_t rest = dots ? node.Rank(i) - static_cast<int64_t>(letters.size()) : 0;
    HONE_ASSIGN_OR_RETURN(Labels labels, ParseLabels(node, terms[i], rest));
    if (labels.size() != node.Shape(i).size()) {
      return node.InvalidError(
          absl::StrCat("'", terms[i], "' does not fit ", node.Type(i).ToText()));
    }
    ellipsis = std::max(ellipsis, rest);
    for (size_t d = 0; d < labels.size(); ++d) {
      ++uses[labels[d]];
      int64_t& extent = equation.extents.emplace(labels[d], 1).first->second;
      const int64_t own = node.Shape(i)[d];
      if (own != extent && own != 1 && extent != 1) {
        return node.InvalidError(
            absl::StrCat("'", labels[d], "' has the extents ", extent, " and ", own));
      }
      if (own != 1) extent = own;
    }
    equation.operands.push_back(std::move(labels));
  }
  if (absl::StrContains(text, "->")) {
    HONE_ASSIGN_OR_RETURN(equation.result, ParseLabels(node, sides.second, ellipsis));
  } else {  // the letters that occur once, in alphabetical order
    HONE_ASSIGN_OR_RETURN(equation.result, ParseLabels(node, "...", ellipsis));
    for (const auto& [label, count] : uses) {
      if (count == 1 && absl::ascii_isalpha(label[0])) equation.result.push_back(label);
    }
  }
  for (auto label = equation.result.begin(); label != equation.result.end(); ++label) {
    if (equation.extents.contains(*label) &&
        std::count(equation.result.begin(), label, *label) == 0) {
      continue;
    }
    return node.InvalidError(absl::StrCat("the result of '", text, "' cannot have '", *label, "'"));
  }
  return equation;
}

// A workload has a limited number of tensors, and its expressions a limited depth.
constexpr int kMaxOperands = 200;
constexpr size_t kMaxChain = 16;

absl::StatusOr<Types> InferEinsum(const NodeView& node) {
  if (node.inputs() > kMaxOperands) {
    return node.UnimplementedError(
        absl::StrCat("more than ", kMaxOperands, " inputs are not supported"));
  }
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_RETURN_IF_ERROR(NeedOneType(node, 0, node.inputs() - 1));
  HONE_ASSIGN_OR_RETURN(const Equation equation, Equation::Of(node));
  std::vector<int64_t> shape;
  for (const std::string& label : equation.result) shape.push_back(equation.extents.at(label));
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

std::string Product(absl::Span<const std::string> factors) {
  if (factors.size() <= kMaxChain) return absl::StrJoin(factors, " * ");
  const size_t middle = factors.size() / 2;
  return absl::StrCat("(", Product(factors.subspan(0, middle)), ") * (",
                      Product(factors.subspan(middle)), ")");
}

absl::Status DefineEinsum(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Equation equation, Equation::Of(node));
  const auto axis = [](const std::string& label) { return absl::StrCat("x", label); };
  std::vector<std::string> axes, reduced;
  std::vector<int64_t> extents;
  for (const std::string& label : equation.result) axes.push_back(axis(label));
  if (axes.empty()) axes = {"i"};
  for (const auto& [label, extent] : equation.extents) {
    if (std::count(equation.result.begin(), equation.result.end(), label) > 0) continue;
    reduced.push_back(axis(label));
    extents.push_back(extent);
  }
  std::vector<std::string> factors;
  for (int i = 0; i < node.inputs(); ++i) {
    std::vector<std::string> element;
    for (size_t d = 0; d < equation.operands[i].size(); ++d) {
      element.push_back(node.Shape(i)[d] == 1 ? "0" : axis(equation.operands[i][d]));
    }
    if (element.empty()) element = {"0"};
    factors.push_back(writer.In(i, element));
  }
  const std::string product = Product(factors);
  writer.Output(
      0, axes,
      reduced.empty() ? product : absl::StrCat(Reduction("sum", reduced, extents), product));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> EinsumOperators() {
  static constexpr OperatorDef kOperators[] = {{"Einsum", 1, -1, InferEinsum, DefineEinsum}};
  return kOperators;
}

}  // namespace hone::graph
