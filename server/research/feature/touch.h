#ifndef HONE_SERVER_RESEARCH_FEATURE_TOUCH_H_
#define HONE_SERVER_RESEARCH_FEATURE_TOUCH_H_

#include "absl/container/inlined_vector.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {

// How one run of a loop accesses a buffer, as AutoTVM counts it (Chen et al., NeurIPS 2018, and its
// public code): by iterations, not by distinct elements.
struct Touch {
  double count =
      1;  // product of the extents of the loops from this one inwards that move the access
  double reuse = 1;  // the same for the loops that do not move it
  // The shares of `count` and `reuse` that come from the parallel loops of this level; 0 for a loop
  // inside all parallel loops.
  double thread_count = 0;
  double thread_reuse = 0;
};

// Sets `touches` to one entry per loop of the statement, outermost first.
void TouchesOf(const Statement& statement, const Access& access,
               absl::InlinedVector<Touch, 24>& touches);

}  // namespace hone::feature

#endif  // HONE_SERVER_RESEARCH_FEATURE_TOUCH_H_
