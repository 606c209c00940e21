#include "client/network/graph/pass/zero_point_shift.h"

#include <utility>

#include "client/network/graph/op/convolution.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

bool ReadsPadding(const Window& window) {
  return !window.IsInside(0, 0) || !window.IsInside(window.outputs - 1, window.kernel - 1);
}

}  // namespace

absl::StatusOr<ZeroPointShift> ShiftOf(const NodeView& convolution,
                                       const std::vector<double>& weights, double zero_point) {
  HONE_ASSIGN_OR_RETURN(const Convolution c, Convolution::Of(convolution, 0, 1));
  int64_t taps = 1;
  for (const Window& window : c.windows) taps *= window.kernel;
  const int64_t channels = c.groups * c.group_outputs;
  ZeroPointShift shift{.shape = {channels}};
  // The sums over the input channels: [channels, taps…].
  shift.elements.assign(channels * taps, 0);
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    shift.elements[index / (taps * c.group_inputs) * taps + index % taps] +=
        zero_point * weights[i];
  }
  // Replaces the taps of one dimension after the other by positions.
  int64_t outer = channels, inner = taps;
  for (const Window& window : c.windows) {
    const int64_t positions = ReadsPadding(window) ? window.outputs : 1;
    inner /= window.kernel;
    std::vector<double> sums(outer * positions * inner, 0);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t p = 0; p < positions; ++p) {
        for (int64_t tap = 0; tap < window.kernel; ++tap) {
          if (!window.IsInside(p, tap)) continue;
          for (int64_t i = 0; i < inner; ++i) {
            sums[(o * positions + p) * inner + i] +=
                shift.elements[(o * window.kernel + tap) * inner + i];
          }
        }
      }
    }
    shift.elements = std::move(sums);
    shift.shape.push_back(positions);
    outer *= positions;
  }
  return shift;
}

}  // namespace hone::graph
