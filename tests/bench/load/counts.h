#ifndef HONE_TESTS_BENCH_LOAD_COUNTS_H_
#define HONE_TESTS_BENCH_LOAD_COUNTS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/bench/load/spread.h"

namespace hone::load {

// Statistics of the sessions of one process. Thread-safe.
struct Counts {
  std::atomic<int64_t> finished{0};      // leases that were run to the end
  std::atomic<int64_t> acknowledged{0};  // those that the server reported as durable
  std::atomic<int64_t> cancelled{0};     // leases that the server took back
  std::atomic<int64_t> calls{0};         // Synchronize calls
  std::atomic<int64_t> failed_calls{0};
  std::atomic<int64_t> refusals{0};  // answers with a reason why there is no work
  std::atomic<int64_t> uploads{0};
  std::atomic<int64_t> downloads{0};
  std::atomic<int64_t> failed_transfers{0};
  Spread acknowledge;  // from the end of a run to the answer that reports it as durable

  void Add(const Counts& other);
  // One line of JSON, for another process. InvalidArgument: malformed line.
  std::string ToJson() const;
  static absl::Status AddJson(absl::string_view json, Counts* counts);
};

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_COUNTS_H_
