#ifndef HONE_SERVER_STORE_STANDING_CHANGE_H_
#define HONE_SERVER_STORE_STANDING_CHANGE_H_

#include "absl/status/status.h"
#include "server/store/store.h"

// Applies changes of workers' standings. Used by every store.
namespace hone::store {

// InvalidArgument: see Store::ChangeStanding.
inline absl::Status CheckChange(const StandingChange& change) {
  return change.worker_id.empty() ? absl::InvalidArgumentError("a standing needs a worker's name")
                                  : absl::OkStatus();
}

inline void Merge(const StandingChange& change, WorkerStanding& standing) {
  standing.worker_id = change.worker_id;
  standing.since_unix_ms = change.since_unix_ms;
  if (change.drained.has_value()) standing.drained = *change.drained;
  const bool flag = change.refused.has_value() && !change.refused->empty() && !change.removed;
  if (!change.refused.has_value() || (flag && standing.removed)) return;
  standing.refused = *change.refused;
  standing.identity = standing.refused.empty() ? "" : change.identity;
  standing.removed = change.removed && !change.refused->empty();
}

// Whether the worker is neither drained nor refused, so that its row is not needed.
inline bool IsGood(const WorkerStanding& standing) {
  return !standing.drained && standing.refused.empty();
}

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_STANDING_CHANGE_H_
