#ifndef HONE_SERVER_FEATURE_PUBLISHED_TOUCH_H_
#define HONE_SERVER_FEATURE_PUBLISHED_TOUCH_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "server/feature/nest.h"

namespace hone::feature {

// How one run of a loop touches a buffer, as AutoTVM counts it (Chen et al., NeurIPS 2018, and its
// public code): iterations and not different elements.
struct Touch {
  double count =
      1;  // product of the extents, from this loop inwards, of those that move the access
  double reuse = 1;  // of those that do not
  // The shares of `count` and `reuse` that the parallel loops on this level make; 0 for a loop
  // below them.
  double thread_count = 0;
  double thread_reuse = 0;
};

// One per loop of the statement, outermost first, in `touches`.
void TouchesOf(const Statement& statement, const Access& access,
               absl::InlinedVector<Touch, 24>& touches);

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_PUBLISHED_TOUCH_H_
