#ifndef HONE_SERVER_LAB_STORE_RESULTS_H_
#define HONE_SERVER_LAB_STORE_RESULTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/store/store.h"

namespace hone::lab {

// A screened candidate in the store of a private server that has ended.
struct StoreResult {
  record::Record record;
  // From the result before it to its own: what running it took, as one runner does one after the
  // other; where the runner waited for builders, four times the median.
  double run_ms = 0;
  double elapsed_ms = 0;  // from its job's creation to its own
};

// Opens a store; waits half a minute for a server that is just ending. Errors of the store.
absl::StatusOr<std::unique_ptr<store::Store>> OpenStoreOfEndedServer(const std::string& path);

// Every screened candidate that is not a default schedule, in the order in which they were
// committed. Errors of the store.
absl::StatusOr<std::vector<StoreResult>> ReadStoreResults(const std::string& path);

// The latency of the best that was confirmed and published for the store's only workload; 0: none
// was. Errors of the store.
absl::StatusOr<double> ReadPublishedLatencyNs(const std::string& path);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_STORE_RESULTS_H_
