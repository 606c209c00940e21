#ifndef HONE_SERVER_STORE_STANDING_COLUMNS_H_
#define HONE_SERVER_STORE_STANDING_COLUMNS_H_

#include "absl/status/status.h"
#include "server/store/store.h"

// The columns of the table standing in the order in which they are bound and read, the same in
// every database; see record_columns.h.
namespace hone::store {

inline constexpr char kStandingColumns[] = "worker, drained, refused, removed, since_unix_ms";

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
  standing.removed = change.removed && !change.refused->empty();
}

// Nothing is said against the worker: there is nothing to keep.
inline bool IsGood(const WorkerStanding& standing) {
  return !standing.drained && standing.refused.empty();
}

template <typename Binder>
void BindStanding(Binder& s, const WorkerStanding& standing) {
  s.Bind(standing.worker_id).BindBool(standing.drained).BindRaw(standing.refused);
  s.BindBool(standing.removed).Bind(standing.since_unix_ms);
}

template <typename Row>
WorkerStanding ReadStanding(Row& row) {
  WorkerStanding standing;
  standing.worker_id = row.Text();
  standing.drained = row.Bool();
  standing.refused = row.Raw();
  standing.removed = row.Bool();
  standing.since_unix_ms = row.Int64();
  return standing;
}

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_STANDING_COLUMNS_H_
