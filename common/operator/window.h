#ifndef HONE_COMMON_OPERATOR_WINDOW_H_
#define HONE_COMMON_OPERATOR_WINDOW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/operator/formula.h"
#include "common/operator/operator.h"

namespace hone::op {

// A window that slides along one dimension of an input: of convolutions and pooling.
struct Window {
  std::string dimension;  // its key: "h"
  int64_t extent = 0;     // of the input
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;  // on each side
  int64_t dilation = 1;

  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  int64_t positions() const { return (extent + 2 * padding - reach()) / stride + 1; }
  ir::Axis NewPositions(OpBuilder& builder) const {
    return builder.NewAxis(dimension, positions());
  }
  // r for h, s for w (as in the books), t for d.
  ir::Axis NewTaps(OpBuilder& builder) const;
  // Where a tap reads the input. Outside it when there is padding: see Guard.
  ir::Index At(const ir::Axis& position, const ir::Axis& tap) const;
  // Padded taps are no part of the sum: a guard of the reduction, which lowering turns into loop
  // bounds.
  void Guard(const ir::Index& at, std::vector<ir::Condition>& guards) const;
};

// The keys of windows along dimensions like "hw": k, s and p (or what the lists give), and where
// there are several dimensions kh, kw, sh, sw, ph, pw, which default to them. `stride_is_kernel`: s
// defaults to k, as pooling has it.
std::vector<KeyInfo> WindowKeys(absl::string_view dimensions, bool stride_is_kernel = false);

// What these keys say; `dil` where the operator has that key.
// The padding may be larger than a kernel: windows that lie in the padding alone have no taps.
// InvalidArgument: a kernel does not fit into its padded input.
absl::StatusOr<std::vector<Window>> Windows(absl::string_view op, const Arguments& arguments,
                                            absl::string_view dimensions);

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_WINDOW_H_
