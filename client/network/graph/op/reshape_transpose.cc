#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

namespace hone::graph {
namespace {

// Operators that keep the order of the elements.

using ir::DType;

int64_t Product(const std::vector<int64_t>& extents, size_t begin, size_t end) {
  return std::accumulate(extents.begin() + begin, extents.begin() + end, int64_t{1},
                         std::multiplies<>());
}

// The indices of a tensor of shape `from` for the element that has the indices `axes` in shape
// `to`. Dimensions are grouped into the smallest parts of equal size, so that most indices are
// plain axes.
std::vector<std::string> Reindexed(const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                                   const std::vector<std::string>& axes) {
  std::vector<std::string> indices;
  size_t f = 0, t = 0;
  while (f < from.size()) {
    const size_t from_begin = f, to_begin = t;
    int64_t from_size = from[f++], to_size = t < to.size() ? to[t++] : 1;
    while (from_size != to_size) {
      if (from_size < to_size) {
        from_size *= from[f++];
      } else {
        to_size *= to[t++];
      }
    }
    std::vector<std::pair<int64_t, std::string>> terms;
    for (size_t d = to_begin; d < t; ++d) {
      if (to[d] > 1) terms.emplace_back(Product(to, d + 1, t), axes[d]);
    }
    const std::string flat = Affine(terms, 0);
    for (size_t d = from_begin; d < f; ++d) {
      const int64_t inner = Product(from, d + 1, f);
      std::string index = terms.size() > 1 ? absl::StrCat("(", flat, ")") : flat;
      if (from[d] == 1) {
        index = "0";
      } else if (inner == 1 && from[d] == from_size) {
        index = flat;
      } else {
        if (inner > 1) absl::StrAppend(&index, " / ", inner);
        if (inner * from[d] != from_size) absl::StrAppend(&index, " % ", from[d]);
      }
      indices.push_back(index);
    }
  }
  if (indices.empty()) indices = {"0"};
  return indices;
}

absl::Status DefineReindexed(const NodeView& node, StageWriter& writer) {
  const std::vector<int64_t>& to = writer.OutputType(0).shape;
  const std::vector<std::string> axes = StageWriter::Axes(to);
  writer.Output(0, axes, writer.In(0, Reindexed(node.Shape(0), to, axes)));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferReshape(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, node.Ints(1));
  HONE_ASSIGN_OR_RETURN(const int64_t allow_zero, node.Int("allowzero", 0));
  const std::vector<int64_t>& from = node.Shape(0);
  int64_t known = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && allow_zero == 0) {
      if (d >= from.size())
        return node.InvalidError("the shape copies a dimension that the input does not have");
      shape[d] = from[d];
    }
    if (shape[d] < -1 || shape[d] > ir::kMaxElements) {
      return node.InvalidError(absl::StrCat("a dimension is ", shape[d]));
    }
    if (shape[d] == -1) continue;
    if (known != 0 && shape[d] > ir::kMaxElements / known) {
      return node.InvalidError("the shape has too many elements");
    }
    known *= shape[d];
  }
  const int64_t elements = node.Type(0).elements();
  const int64_t unknown = std::count(shape.begin(), shape.end(), -1);
  if (unknown == 1 && known > 0 && elements % known == 0) {
    std::replace(shape.begin(), shape.end(), int64_t{-1}, elements / known);
    known = elements;
  }
  if (unknown > 1 || known != elements || std::count(shape.begin(), shape.end(), -1) > 0) {
    return node.InvalidError(absl::StrCat("cannot reshape ", node.Type(0).ToText(), " to [",
                                          absl::StrJoin(shape, ", "), "]"));
  }
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

absl::StatusOr<Types> InferFlatten(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", 1));
  const std::vector<int64_t>& shape = node.Shape(0);
  if (axis != node.Rank(0)) {
    HONE_ASSIGN_OR_RETURN(axis, AxisOf(node, axis, node.Rank(0)));
  }
  return Types{{node.Type(0).dtype, {Product(shape, 0, axis), Product(shape, axis, shape.size())}}};
}

absl::StatusOr<Types> InferSqueeze(const NodeView& node) {
  const std::vector<int64_t>& from = node.Shape(0);
  HONE_ASSIGN_OR_RETURN(const auto axes, AxesInput(node, 1, node.Rank(0)));
  std::vector<int64_t> shape;
  for (int64_t d = 0; d < node.Rank(0); ++d) {
    const bool named = std::count(axes.begin(), axes.end(), d) > 0;
    if (named && node.Has(1) && from[d] != 1) {
      return node.InvalidError(
          absl::StrCat("cannot remove dimension ", d, " of ", node.Type(0).ToText()));
    }
    if (!named || from[d] != 1) shape.push_back(from[d]);
  }
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

absl::StatusOr<Types> InferUnsqueeze(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.Ints(1));
  const int64_t rank = node.Rank(0) + static_cast<int64_t>(axes.size());
  // Checking a long list of axes would take very long.
  if (rank > ir::kMaxRank) {
    return node.InvalidError(absl::StrCat("its result has ", rank, " dimensions; at most ",
                                          ir::kMaxRank, " are supported"));
  }
  HONE_ASSIGN_OR_RETURN(axes, AxesOf(node, std::move(axes), rank));
  std::vector<int64_t> shape;
  auto next = node.Shape(0).begin();
  for (int64_t d = 0; d < rank; ++d) {
    shape.push_back(std::count(axes.begin(), axes.end(), d) > 0 ? 1 : *next++);
  }
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

absl::StatusOr<Types> InferIdentity(const NodeView& node) { return Types{node.Type(0)}; }

absl::StatusOr<Types> InferDropout(const NodeView& node) {
  if (node.Has(2)) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> training, node.Ints(2));
    if (training.size() != 1 || training[0] != 0) {
      return node.UnimplementedError("training is not supported");
    }
  }
  return Types{node.Type(0), {DType::kBool, node.Shape(0)}};
}

absl::Status DefineDropout(const NodeView& node, StageWriter& writer) {
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  if (writer.WantsOutput(0)) writer.Output(0, axes, writer.In(0, axes));
  if (writer.WantsOutput(1)) writer.Output(1, axes, Literal(DType::kBool, 1));
  return absl::OkStatus();
}

// Operators that permute elements.

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

absl::Span<const OperatorDef> ReshapeTransposeOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"DepthToSpace", 1, 1, InferDepthToSpace, DefineDepthToSpace},
      {"Dropout", 1, 3, InferDropout, DefineDropout, "without training"},
      {"Flatten", 1, 1, InferFlatten, DefineReindexed},
      {"Identity", 1, 1, InferIdentity, DefineReindexed},
      {"Reshape", 2, 2, InferReshape, DefineReindexed, "a constant shape"},
      {"SpaceToDepth", 1, 1, InferSpaceToDepth, DefineSpaceToDepth},
      {"Squeeze", 1, 2, InferSqueeze, DefineReindexed, "constant axes"},
      {"Transpose", 1, 1, InferTranspose, DefineTranspose},
      {"Unsqueeze", 2, 2, InferUnsqueeze, DefineReindexed, "constant axes"},
  };
  return kOperators;
}

}  // namespace hone::graph
