#include "server/service/standing_keeper.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "spdlog/spdlog.h"

namespace hone::service {

absl::Status StandingKeeper::Restore() {
  HONE_ASSIGN_OR_RETURN(const std::vector<store::WorkerStanding> rows, store_->Standings());
  std::vector<fleet::Standing> standings;
  for (const store::WorkerStanding& row : rows) {
    standings.push_back({.worker_id = row.worker_id,
                         .drained = row.drained,
                         .refused = row.refused,
                         .removed = row.removed});
  }
  fleet_->Restore(standings);
  return absl::OkStatus();
}

void StandingKeeper::Keep(const std::string& worker_id, store::Store::Done done) {
  absl::MutexLock lock(&order_);
  fleet::Standing standing = fleet_->StandingOf(worker_id);
  store_->PutStanding({.worker_id = worker_id,
                       .drained = standing.drained,
                       .refused = std::move(standing.refused),
                       .removed = standing.removed,
                       .since_unix_ms = absl::ToUnixMillis(clock_->Now())},
                      std::move(done));
}

void StandingKeeper::Keep(const std::string& worker_id) {
  Keep(worker_id, [worker_id](const absl::Status& status) {
    if (status.ok()) return;
    spdlog::error("how worker {} stands could not be stored, and ends with this server: {}",
                  worker_id, status.ToString());
  });
}

}  // namespace hone::service
