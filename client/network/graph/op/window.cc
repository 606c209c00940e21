#include "client/network/graph/op/window.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

// The maximum of strides, dilations, pads and the extents of kernels.
constexpr int64_t kMaxStep = int64_t{1} << 28;

// Chooses the padding for auto_pad SAME_UPPER or SAME_LOWER, so that the number of outputs is the
// extent divided by the stride, rounded up.
void PadSame(Window& window, bool upper) {
  window.outputs = (window.extent + window.stride - 1) / window.stride;
  const int64_t covered =
      (window.outputs - 1) * window.stride + (window.kernel - 1) * window.dilation + 1;
  const int64_t padding = std::max<int64_t>(0, covered - window.extent);
  window.begin = upper ? padding / 2 : padding - padding / 2;
  window.end = padding - window.begin;
}

// Counts the outputs for the given padding. Windows that begin after the end of the image, in the
// padding at its end, do not count.
void CountOutputs(Window& window, bool ceil) {
  const int64_t free =
      window.extent + window.begin + window.end - (window.kernel - 1) * window.dilation - 1;
  window.outputs = free < 0 ? 0 : (free + (ceil ? window.stride - 1 : 0)) / window.stride + 1;
  if (ceil && (window.outputs - 1) * window.stride >= window.extent + window.begin) {
    --window.outputs;
  }
}

}  // namespace

std::string Window::At(absl::string_view position, absl::string_view tap) const {
  return Affine({{stride, std::string(position)}, {dilation, std::string(tap)}}, -begin);
}

void Window::Guard(absl::string_view position, absl::string_view tap,
                   std::vector<std::string>& guards, int64_t before, int64_t after) const {
  const int64_t last = (outputs - 1) * stride + (kernel - 1) * dilation - begin;
  if (begin <= before && last < extent + after) return;
  const std::string at =
      Affine({{stride, std::string(position)}, {dilation, std::string(tap)}}, before - begin);
  guards.push_back(absl::StrCat("0 <= ", at, " < ", extent + before + after));
}

absl::StatusOr<std::vector<int64_t>> PerDimension(const NodeView& node, absl::string_view name,
                                                  size_t dimensions, int64_t default_value,
                                                  int64_t least) {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> list,
                        node.IntList(name, std::vector<int64_t>(dimensions, default_value)));
  if (list.size() != dimensions) {
    return node.InvalidError(
        absl::StrCat(name, " has ", list.size(), " numbers instead of ", dimensions));
  }
  for (const int64_t number : list) {
    if (least <= number && number <= kMaxStep) continue;
    return node.InvalidError(absl::StrCat(name, " contains ", number, "; the allowed range is ",
                                          least, " to ", kMaxStep));
  }
  return list;
}

absl::StatusOr<std::vector<Window>> Windows(const NodeView& node,
                                            const std::vector<int64_t>& kernel) {
  const size_t n = kernel.size();
  if (n == 0 || node.Shape(0).size() != n + 2) {
    return node.InvalidError(
        absl::StrCat("a window of ", n, " dimensions does not fit ", node.Type(0).ToText()));
  }
  HONE_ASSIGN_OR_RETURN(const auto strides, PerDimension(node, "strides", n, 1, 1));
  HONE_ASSIGN_OR_RETURN(const auto dilations, PerDimension(node, "dilations", n, 1, 1));
  HONE_ASSIGN_OR_RETURN(const auto pads, PerDimension(node, "pads", 2 * n, 0, 0));
  HONE_ASSIGN_OR_RETURN(const std::string auto_pad, node.String("auto_pad", "NOTSET"));
  HONE_ASSIGN_OR_RETURN(const int64_t ceil_mode, node.Int("ceil_mode", 0));
  HONE_ASSIGN_OR_RETURN(const bool last, HasChannelsLast(node));
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty()) {
    return node.InvalidError(
        absl::StrCat("auto_pad is '", auto_pad, "', which ONNX does not define"));
  }
  std::vector<Window> windows;
  for (size_t d = 0; d < n; ++d) {
    const bool padded = auto_pad == "NOTSET" || auto_pad.empty();
    Window window{node.Shape(0)[d + (last ? 1 : 2)],
                  kernel[d],
                  strides[d],
                  dilations[d],
                  padded ? pads[d] : 0,
                  padded ? pads[n + d] : 0,
                  0};
    if (window.kernel < 1 || window.kernel > kMaxStep) {
      return node.InvalidError(absl::StrCat("a kernel has the extent ", window.kernel));
    }
    if (same) {
      PadSame(window, auto_pad == "SAME_UPPER");
    } else {
      CountOutputs(window, ceil_mode != 0);
    }
    if (window.outputs < 1) {
      return node.InvalidError(absl::StrCat("a kernel of extent ", window.kernel,
                                            " exceeds dimension ", d + (last ? 1 : 2), " of ",
                                            node.Type(0).ToText(), " with its padding"));
    }
    windows.push_back(window);
  }
  return windows;
}

}  // namespace hone::graph
