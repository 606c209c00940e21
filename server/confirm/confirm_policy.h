#ifndef HONE_SERVER_CONFIRM_CONFIRM_POLICY_H_
#define HONE_SERVER_CONFIRM_CONFIRM_POLICY_H_

#include "common/record/record.h"

namespace hone::job {

// How a process measures a finalist, and a challenger of the leader.
inline record::Policy ConfirmPolicy() {
  return {.name = "confirm", .repeats = 5, .confidence = 0.95};
}

}  // namespace hone::job

#endif  // HONE_SERVER_CONFIRM_CONFIRM_POLICY_H_
