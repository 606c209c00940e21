#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_MOMENTS_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_MOMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/network/graph/node_view.h"
#include "client/network/graph/stage_writer.h"
#include "common/ir/dtype.h"

namespace hone::graph {

// How a normalization divides input 0 into groups of elements that it normalizes. `element`,
// `first` and `first_of_own` are indices of the input; `own` are indices of a tensor of groups.
struct Normalized {
  std::vector<std::string> axes;          // of the input
  std::vector<std::string> groups;        // the axes of the groups
  std::vector<int64_t> shape;             // the extents of `groups`
  std::vector<std::string> members;       // the axes of a group's elements
  std::vector<int64_t> extents;           // the extents of `members`
  std::vector<std::string> element;       // the element at `groups` and `members`
  std::vector<std::string> first;         // the first element of the group at `groups`
  std::vector<std::string> own;           // the group of the element at `axes`
  std::vector<std::string> first_of_own;  // the first element of that group

  // Makes one group for each element of the dimensions before `axis`.
  static Normalized Tail(const NodeView& node, int64_t axis);
  // Divides the channels, dimension 1, of each sample into this many groups.
  static Normalized Channels(const NodeView& node, int64_t groups);
};

// Writes the stages of the mean and the variance of each group, in f32 or f64. All elements are
// taken relative to the first one of the group, which removes a large common offset exactly. The
// variance takes a second pass, because E[x²] − E[x]² would cancel.
class Moments {
 public:
  // Without `centered`, the mean is taken as 0.
  Moments(const NodeView& node, StageWriter& writer, Normalized parts, double epsilon,
          bool centered);

  const std::vector<std::string>& axes() const { return parts_.axes; }
  ir::DType dtype() const { return dtype_; }
  // Values of type dtype() at axes(): (x - mean) / sqrt(variance + epsilon), the mean, and 1 /
  // sqrt(variance + epsilon).
  std::string Value() const;
  std::string Mean() const;
  std::string InverseDeviation() const;

 private:
  std::string At(const std::vector<std::string>& indices) const;
  std::string Deviation(const std::vector<std::string>& element,
                        const std::vector<std::string>& first,
                        const std::vector<std::string>& group) const;

  StageWriter& writer_;
  const Normalized parts_;
  const ir::DType input_dtype_, dtype_;
  const double epsilon_;
  const bool centered_;
  std::string share_;  // 1 / the number of elements of a group
  std::string sum_, squares_;
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_MOMENTS_H_
