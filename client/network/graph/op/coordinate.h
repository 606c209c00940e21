#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_COORDINATE_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_COORDINATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/network/graph/node_view.h"

namespace hone::graph {

// The largest extent that can be resized. Coordinates are exact up to this extent.
inline constexpr int64_t kMaxResized = 1 << 24;

// One dimension of a resized tensor.
struct Resized {
  int64_t from, to;
  int64_t p, q;  // 1 / scale is the fraction p / q

  bool changes() const { return from != to || p != q; }
  // Scales the extent `from`. InvalidArgument: the scale or the extent is out of range.
  static absl::StatusOr<Resized> ByScale(const NodeView& node, int64_t from, double scale);
};

// The exact input coordinate of element o of the result: (factor·o + offset) / divisor.
struct Coordinate {
  int64_t factor = 1, offset = 0, divisor = 1;

  // From the attribute coordinate_transformation_mode. Unimplemented: the mode is not supported.
  static absl::StatusOr<Coordinate> Of(const NodeView& node, const Resized& dimension);
  // The coordinate whose floor is the nearest element according to the attribute nearest_mode.
  absl::StatusOr<Coordinate> Nearest(const NodeView& node) const;

  bool IsWhole() const { return factor % divisor == 0 && offset % divisor == 0; }
  // The coordinate of one element of the result, rounded down.
  int64_t At(int64_t output) const;
  // Index expressions: "2*i + 1" without the divisor, and "(2*i + 1) / 4", which is rounded down.
  std::string Numerator(const std::string& axis) const;
  std::string Whole(const std::string& axis) const;
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_COORDINATE_H_
