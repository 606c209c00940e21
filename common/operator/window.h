#ifndef HONE_COMMON_OPERATOR_WINDOW_H_
#define HONE_COMMON_OPERATOR_WINDOW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/operator/formula.h"
#include "common/operator/operator.h"

namespace hone::op {

// A window that slides along one dimension of an input, for convolutions and pooling.
struct Window {
  std::string dimension;  // its key, e.g. "h"
  int64_t extent = 0;     // size of the input
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;  // on each side
  int64_t dilation = 1;

  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  int64_t positions() const { return (extent + 2 * padding - reach()) / stride + 1; }
  ir::Axis NewPositions(OpBuilder& builder) const {
    return builder.NewAxis(dimension, positions());
  }
  // Creates the axis of the taps: r for h, s for w (as in the literature), t for d.
  ir::Axis NewTaps(OpBuilder& builder) const;
  // The position that a tap reads. It may lie outside the input if there is padding; see Guard.
  ir::Index At(const ir::Axis& position, const ir::Axis& tap) const;
  // Adds a guard that excludes padded taps from the reduction. Lowering turns it into loop bounds.
  void Guard(const ir::Index& at, std::vector<ir::Condition>& guards) const;
};

// The keys of windows over dimensions such as "hw": k, s and p, and with several dimensions also
// kh, kw, sh, sw, ph and pw, which default to them. With `stride_is_kernel`, s defaults to k, as in
// pooling.
std::vector<KeyInfo> WindowKeys(absl::string_view dimensions, bool stride_is_kernel = false);

// Creates the windows from these keys, and `dil` if the operator has that key. The padding may
// exceed the kernel; windows entirely in the padding have no taps. InvalidArgument: a kernel does
// not fit into its padded input.
absl::StatusOr<std::vector<Window>> Windows(absl::string_view op, const Arguments& arguments,
                                            absl::string_view dimensions);

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_WINDOW_H_
