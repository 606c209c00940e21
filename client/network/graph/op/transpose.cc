#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

// Operators that permute elements.
namespace hone::graph {
namespace {

absl::StatusOr<std::vector<int64_t>> Permutation(const NodeView& node) {
  std::vector<int64_t> reversed(node.Rank(0));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> permutation, node.IntList("perm", reversed));
  if (permutation.size() != reversed.size()) {
    return node.InvalidError(
        absl::StrCat("perm has ", permutation.size(), " numbers for rank ", node.Rank(0)));
  }
  for (const int64_t d : permutation) {
    if (d < 0) return node.InvalidError(absl::StrCat("perm contains ", d));
  }
  return AxesOf(node, std::move(permutation), node.Rank(0));
}

absl::StatusOr<Types> InferTranspose(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> permutation, Permutation(node));
  std::vector<int64_t> shape;
  for (const int64_t d : permutation) shape.push_back(node.Shape(0)[d]);
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

absl::Status DefineTranspose(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> permutation, Permutation(node));
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  std::vector<std::string> element(axes.size(), "0");
  for (size_t d = 0; d < permutation.size(); ++d) element[permutation[d]] = axes[d];
  writer.Output(0, axes, writer.In(0, element));
  return absl::OkStatus();
}

// The size of a block, for images [n, c, h, w].
absl::StatusOr<int64_t> Block(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t block, node.Int("blocksize", 0));
  if (block < 1 || block > (1 << 20)) {
    return node.InvalidError(absl::StrCat("blocksize is ", block));
  }
  if (node.Rank(0) == 4) return block;
  return node.InvalidError(absl::StrCat("needs images of rank 4, not ", node.Type(0).ToText()));
}

absl::StatusOr<Types> InferDepthToSpace(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t b, Block(node));
  HONE_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "DCR"));
  if (mode != "DCR" && mode != "CRD")
    return node.InvalidError(absl::StrCat("mode is '", mode, "'"));
  const std::vector<int64_t>& x = node.Shape(0);
  if (x[1] % (b * b) != 0) return node.InvalidError("blocks do not divide the channels");
  return Types{{node.Type(0).dtype, {x[0], x[1] / (b * b), x[2] * b, x[3] * b}}};
}

absl::Status DefineDepthToSpace(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t b, Block(node));
  HONE_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "DCR"));
  const int64_t channels = writer.OutputType(0).shape[1];
  const std::string row = absl::StrCat("h % ", b), column = absl::StrCat("w % ", b);
  const std::string channel =
      mode == "DCR"
          ? absl::StrCat("(", row, ") * ", b * channels, " + (", column, ") * ", channels, " + c")
          : absl::StrCat("c * ", b * b, " + (", row, ") * ", b, " + ", column);
  writer.Output(0, {"n", "c", "h", "w"},
                writer.In(0, {"n", channel, absl::StrCat("h / ", b), absl::StrCat("w / ", b)}));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferSpaceToDepth(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t b, Block(node));
  const std::vector<int64_t>& x = node.Shape(0);
  if (x[2] % b != 0 || x[3] % b != 0) return node.InvalidError("blocks do not divide the image");
  // An empty image may have very many channels.
  if (x[1] > ir::kMaxElements / (b * b)) {
    return node.InvalidError(
        absl::StrCat("its result has more than ", ir::kMaxElements, " channels"));
  }
  return Types{{node.Type(0).dtype, {x[0], x[1] * b * b, x[2] / b, x[3] / b}}};
}

absl::Status DefineSpaceToDepth(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t b, Block(node));
  const int64_t channels = node.Shape(0)[1];
  writer.Output(0, {"n", "c", "h", "w"},
                writer.In(0, {"n", absl::StrCat("c % ", channels),
                              absl::StrCat("h * ", b, " + c / ", b * channels),
                              absl::StrCat("w * ", b, " + c / ", channels, " % ", b)}));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> TransposeOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"DepthToSpace", 1, 1, InferDepthToSpace, DefineDepthToSpace},
      {"SpaceToDepth", 1, 1, InferSpaceToDepth, DefineSpaceToDepth},
      {"Transpose", 1, 1, InferTranspose, DefineTranspose},
  };
  return kOperators;
}

}  // namespace hone::graph
