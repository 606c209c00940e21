#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

// Operators that repeat elements.
namespace hone::graph {
namespace {

absl::StatusOr<Types> InferExpand(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> given, node.Ints(1));
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, Broadcast(node, node.Shape(0), given));
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

absl::Status DefineExpand(const NodeView& node, StageWriter& writer) {
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  writer.Output(0, axes, BroadcastElement(writer, 0, node.Shape(0), axes));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferTile(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, node.Ints(1));
  std::vector<int64_t> shape = node.Shape(0);
  if (repeats.size() != shape.size()) {
    return node.InvalidError(absl::StrCat(repeats.size(), " repeats for ", node.Type(0).ToText()));
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (repeats[d] < 0 || (shape[d] > 0 && repeats[d] > ir::kMaxElements / shape[d])) {
      return node.InvalidError(absl::StrCat("repeats dimension ", d, " ", repeats[d], " times"));
    }
    shape[d] *= repeats[d];
  }
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

absl::Status DefineTile(const NodeView& node, StageWriter& writer) {
  const std::vector<int64_t>&from = node.Shape(0), &to = writer.OutputType(0).shape;
  const std::vector<std::string> axes = StageWriter::Axes(to);
  std::vector<std::string> element = {"0"};
  element.resize(axes.size());
  for (size_t d = 0; d < from.size(); ++d) {
    element[d] = from[d] == 1       ? "0"
                 : from[d] == to[d] ? axes[d]
                                    : absl::StrCat(axes[d], " % ", from[d]);
  }
  writer.Output(0, axes, writer.In(0, element));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> RepeatOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Expand", 2, 2, InferExpand, DefineExpand, "a constant shape"},
      {"Tile", 2, 2, InferTile, DefineTile, "constant repeats"},
  };
  return kOperators;
}

}  // namespace hone::graph
