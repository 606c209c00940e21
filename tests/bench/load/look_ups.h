#ifndef HONE_TESTS_BENCH_LOAD_LOOK_UPS_H_
#define HONE_TESTS_BENCH_LOAD_LOOK_UPS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/load/caller.h"

namespace hone::load {

// Simulates CI jobs that look up the best of random known workloads (store/known_workloads.h), over
// separate connections.
absl::StatusOr<std::unique_ptr<Caller>> StartLookUps(const std::string& server,
                                                     const std::string& target, double per_second);

// A worker without a device that calls Synchronize and is answered at once. It measures the
// handling time that a worker sees, including the wait for a server thread and the network.
absl::StatusOr<std::unique_ptr<Caller>> StartProbe(const std::string& server, double per_second);

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_LOOK_UPS_H_
