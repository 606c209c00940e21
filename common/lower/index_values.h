#ifndef HONE_COMMON_LOWER_INDEX_VALUES_H_
#define HONE_COMMON_LOWER_INDEX_VALUES_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/ir/index.h"

namespace hone::lower {

// The values that indices can have at a place of a program, according to the domains of variables
// and to conditions that hold at this place. A pass that visits a program adds a condition when it
// enters a branch, and removes it when it leaves.
class IndexValues {
 public:
  // The table outlives this object.
  explicit IndexValues(const ir::AtomTable& atoms) : atoms_(atoms) {}

  // Adds that an index is within a range.
  void Add(ir::Index index, ir::Range range) { known_.push_back({std::move(index), range}); }
  int size() const { return static_cast<int>(known_.size()); }
  // Removes the latest conditions until `size` are left.
  void Shrink(int size) { known_.resize(size); }

  // Returns bounds of the index. Empty (min > max) if the conditions contradict each other.
  ir::Range RangeOf(const ir::Index& index) const;
  // Returns the values of the index in ascending order, and possibly some more. Returns nullopt if
  // there are too many.
  std::optional<std::vector<int64_t>> Of(const ir::Index& index) const;

 private:
  struct Known {
    ir::Index index;
    ir::Range range;
  };
  // Writes index = factor · known + rest. Returns false if it has no such form with a factor other
  // than 0.
  static bool Contains(const ir::Index& index, const ir::Index& known, int64_t& factor,
                       ir::Index& rest);
  std::optional<std::vector<int64_t>> Enumerate(const ir::Index& index) const;

  const ir::AtomTable& atoms_;
  std::vector<Known> known_;
};

}  // namespace hone::lower

#endif  // HONE_COMMON_LOWER_INDEX_VALUES_H_
