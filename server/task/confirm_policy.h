#ifndef HONE_SERVER_TASK_CONFIRM_POLICY_H_
#define HONE_SERVER_TASK_CONFIRM_POLICY_H_

#include "common/record/record.h"

namespace hone::task {

// How a process measures a finalist, and a challenger of the leader.
inline record::Policy ConfirmPolicy() {
  return {.name = "confirm", .repeats = 5, .confidence = 0.95};
}

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_CONFIRM_POLICY_H_
