#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/network/onnx/compose/composition.h"
#include "common/base/status_macros.h"

// Operators that move elements to places that are known when a model is read.
namespace hone::onnx {
namespace {

using graph::ValueId;
using Extents = std::vector<int64_t>;

Composed CenterCropPad(Rewrite& composer) {
  const graph::NodeView node = composer.view();
  if (!node.Has(0) || !node.Has(1)) return node.InvalidError("needs a tensor and a shape");
  HONE_ASSIGN_OR_RETURN(const Extents wanted, node.Ints(1));
  Extents axes;
  for (int64_t d = 0; d < node.Rank(0); ++d) axes.push_back(d);
  HONE_ASSIGN_OR_RETURN(axes, node.IntList("axes", axes));
  if (axes.size() != wanted.size()) {
    return node.InvalidError(absl::StrCat(wanted.size(), " extents for ", axes.size(), " axes"));
  }
  const int64_t rank = node.Rank(0);
  Extents pads(2 * rank, 0);
  ValueId value = composer.input(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank || wanted[i] < 0) {
      return node.InvalidError(absl::StrCat("axis ", axes[i], " gets the extent ", wanted[i]));
    }
    const int64_t extent = composer.TypeOf(value).shape[axis];
    if (wanted[i] < extent) {
      const int64_t begin = (extent - wanted[i]) / 2;
      HONE_ASSIGN_OR_RETURN(value, composer.Slice(value, axis, begin, begin + wanted[i]));
    } else {
      pads[axis] = (wanted[i] - extent) / 2;
      pads[rank + axis] = wanted[i] - extent - pads[axis];
    }
  }
  if (std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad > 0; })) {
    HONE_ASSIGN_OR_RETURN(value, composer.Apply("Pad", {value, composer.Ints("pads", pads)}));
  }
  return std::vector<ValueId>{value};
}

Composed Compress(Rewrite& composer) {
  const graph::NodeView node = composer.view();
  if (!node.Has(0) || !node.Has(1)) return node.InvalidError("needs a tensor and a condition");
  ValueId value = composer.input(0);
  int64_t axis = 0;
  if (node.HasAttribute("axis")) {
    HONE_ASSIGN_OR_RETURN(axis, node.AxisAttribute("axis", 0, node.Rank(0)));
  } else {
    HONE_ASSIGN_OR_RETURN(value, composer.Reshape(value, {node.Type(0).elements()}));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalar> condition, node.Elements(1));
  if (node.Rank(1) != 1 || std::ssize(condition) > composer.TypeOf(value).shape[axis]) {
    return node.InvalidError(absl::StrCat("a condition of type ", node.Type(1).ToText(),
                                          " does not fit ", node.Type(0).ToText()));
  }
  Extents kept;
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i].IsTrue()) kept.push_back(static_cast<int64_t>(i));
  }
  HONE_ASSIGN_OR_RETURN(
      value, composer.Apply("Gather", {value, composer.Ints("kept", kept)}, {{"axis", axis}}));
  return std::vector<ValueId>{value};
}

// Adds the columns, each the elements of a block, where the blocks lie in the image. Each element
// of the image gathers those of all places in a block.
Composed Col2Im(Rewrite& composer) {
  const graph::NodeView node = composer.view();
  HONE_ASSIGN_OR_RETURN(const Extents image, node.Ints(1));
  HONE_ASSIGN_OR_RETURN(const Extents block, node.Ints(2));
  const size_t n = image.size();
  HONE_ASSIGN_OR_RETURN(const Extents strides, node.IntList("strides", Extents(n, 1)));
  HONE_ASSIGN_OR_RETURN(const Extents dilations, node.IntList("dilations", Extents(n, 1)));
  HONE_ASSIGN_OR_RETURN(const Extents pads, node.IntList("pads", Extents(2 * n, 0)));
  if (n == 0 || block.size() != n || strides.size() != n || dilations.size() != n ||
      pads.size() != 2 * n) {
    return node.InvalidError(
        "image_shape, block_shape, strides, dilations or pads have a wrong length");
  }
  constexpr int64_t kMost = 1 << 24;
  int64_t taps = 1, blocks = 1, elements = 1;  // in a block, in the image, and of the image
  Extents positions;                           // of blocks
  for (size_t d = 0; d < n; ++d) {
    if (std::max({image[d], block[d], strides[d], dilations[d], pads[d], pads[n + d]}) > kMost ||
        std::min({image[d], block[d], strides[d], dilations[d]}) < 1 ||
        std::min(pads[d], pads[n + d]) < 0) {
      return node.InvalidError(
          "image_shape, block_shape, strides, dilations or pads are out of range");
    }
    const int64_t room = image[d] + pads[d] + pads[n + d] - dilations[d] * (block[d] - 1) - 1;
    if (room < 0) return node.InvalidError("a block is larger than the image");
    positions.push_back(room / strides[d] + 1);
    if (block[d] > kMost / taps || positions[d] > kMost / blocks || image[d] > kMost / elements) {
      return node.InvalidError("the image or the blocks are too large");
    }
    taps *= block[d];
    blocks *= positions[d];
    elements *= image[d];
  }
  const graph::TensorType type = node.Type(0);  // a copy, because constants are added
  if (node.Rank(0) != 3 || type.elements() == 0 || type.shape[1] % taps != 0 ||
      type.shape[2] != blocks) {
    return node.InvalidError(absl::StrCat("columns of type ", type.ToText(), " do not fit ", blocks,
                                          " blocks of [", absl::StrJoin(block, ", "), "]"));
  }
  if (elements > kMost / taps) return node.InvalidError("the image or the blocks are too large");
  const graph::TensorType table{ir::DType::kI64, {taps, elements}};
  const graph::TensorType flags{ir::DType::kBool, table.shape};
  HONE_RETURN_IF_ERROR(composer.Reserve(table));
  HONE_RETURN_IF_ERROR(composer.Reserve(flags));
  ir::Scalars places, inside;
  bool all_inside = true;
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t element = 0; element < elements; ++element) {
      int64_t at = 0, stride = 1, tap_rest = tap, rest = element;
      bool is_inside = true;
      for (size_t d = n; d-- > 0;) {
        const int64_t begin = rest % image[d] + pads[d] - tap_rest % block[d] * dilations[d];
        is_inside =
            is_inside && begin >= 0 && begin % strides[d] == 0 && begin / strides[d] < positions[d];
        at += is_inside ? begin / strides[d] * stride : 0;
        stride *= positions[d];
        rest /= image[d];
        tap_rest /= block[d];
      }
      places.push_back(tap * blocks + (is_inside ? at : 0));
      inside.push_back(ir::CastTo(ir::DType::kBool, is_inside ? 1 : 0));
      all_inside = all_inside && is_inside;
    }
  }
  const int64_t channels = type.shape[1] / taps;
  Extents to = {type.shape[0], channels};
  to.insert(to.end(), image.begin(), image.end());
  HONE_ASSIGN_OR_RETURN(
      const ValueId columns,
      composer.Reshape(composer.input(0), {type.shape[0] * channels, taps * blocks}));
  HONE_ASSIGN_OR_RETURN(
      ValueId value, composer.Apply("Gather", {columns, composer.Constant("places", table, places)},
                                    {{"axis", int64_t{1}}}));
  if (!all_inside) {
    HONE_ASSIGN_OR_RETURN(
        value, composer.Apply("Where", {composer.Constant("inside", flags, inside), value,
                                        composer.Scalar("zero", value, 0)}));
  }
  HONE_ASSIGN_OR_RETURN(value, composer.Apply("ReduceSum", {value, composer.Ints("taps", {1})},
                                              {{"keepdims", int64_t{0}}}));
  HONE_ASSIGN_OR_RETURN(value, composer.Reshape(value, to));
  return std::vector<ValueId>{value};
}

}  // namespace

absl::Span<const Composition> PlaceCompositions() {
  static constexpr Composition kCompositions[] = {
      {"CenterCropPad", CenterCropPad, "a constant shape"},
      {"Col2Im", Col2Im, "constant shapes", nullptr, {3, 3}},
      {"Compress", Compress, "a constant condition, except on the host"},
  };
  return kCompositions;
}

}  // namespace hone::onnx
