#ifndef HONE_CLIENT_NETWORK_GRAPH_CONSTANT_DATA_H_
#define HONE_CLIENT_NETWORK_GRAPH_CONSTANT_DATA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/digest.h"

namespace hone::graph {

// The elements of a constant tensor, row-major, little-endian. Immutable, shared by copies, and
// safe to use from several threads. The bytes may belong to a mapped file, or be computed when they
// are first read.
class ConstantData {
 public:
  explicit ConstantData(std::string bytes);
  ConstantData(std::shared_ptr<const void> owner, absl::string_view bytes);
  // Makes a constant whose `size` bytes are computed by `compute` when bytes() is first called.
  // `recipe` identifies the computation: constants with equal recipes have equal elements.
  static ConstantData Computed(const Digest& recipe, int64_t size,
                               std::function<std::string()> compute);

  int64_t size() const;
  absl::string_view bytes() const;

  // Whether the elements are not known before bytes() computes them.
  bool is_computed() const { return computed_ != nullptr; }
  // Identifies the elements in this process without reading them. Constants with equal origins have
  // equal elements; constants with equal elements may have different origins.
  Digest origin() const;

 private:
  struct Computation;

  std::shared_ptr<const void> owner_;
  absl::string_view bytes_;                // if computed_ is null
  int64_t id_ = 0;                         // the same for copies only; see origin()
  std::shared_ptr<Computation> computed_;  // may be null
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_CONSTANT_DATA_H_
