#ifndef HONE_COMMON_OPERATOR_CONVOLUTION_H_
#define HONE_COMMON_OPERATOR_CONVOLUTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/operator/formula.h"
#include "common/operator/operator.h"
#include "common/operator/window.h"

namespace hone::op {

// Memory layout of a convolution's tensors.
enum class Layout {
  kChannelsLast,   // X[n, spatial…, ci], W[kernel…, ci/groups, co], Y[n, spatial…, co]
  kChannelsFirst,  // X[n, ci, spatial…], W[co, ci/groups, kernel…], Y[n, co, spatial…]
};

// The keys of a convolution: those of its input, ci, co, those of its windows, and dil and groups
// if supported.
std::vector<KeyInfo> ConvolutionKeys(absl::string_view dimensions);
std::vector<TensorInfo> ConvolutionInputs(absl::string_view dimensions, Layout layout);

// Builds a convolution in two steps, because inputs must be declared before stages.
class Convolution {
 public:
  // Declares the inputs X and W of a convolution over dimensions such as "hw". InvalidArgument: the
  // kernel does not fit, or the groups do not divide the channels.
  static absl::StatusOr<Convolution> Declare(OpBuilder& builder, absl::string_view op,
                                             const Arguments& arguments,
                                             absl::string_view dimensions, Layout layout);
  // Adds the stage that computes the sum.
  ir::BufferId AddStage(OpBuilder& builder, std::string name) const;

 private:
  Layout layout_;
  std::vector<Window> windows_;
  int64_t n_, ci_, co_, groups_;
  ir::BufferId x_, w_;
};

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_CONVOLUTION_H_
