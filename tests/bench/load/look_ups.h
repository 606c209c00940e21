#ifndef HONE_TESTS_BENCH_LOAD_LOOK_UPS_H_
#define HONE_TESTS_BENCH_LOAD_LOOK_UPS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/load/caller.h"

namespace hone::load {

// CI jobs that ask for the best of random known workloads (store/known_workloads.h), over
// connections of their own.
absl::StatusOr<std::unique_ptr<Caller>> StartLookUps(const std::string& server,
                                                     const std::string& target, double per_second);

// A worker without a device that calls Synchronize and is answered at once: how long that takes is
// the handling as a worker sees it, with the wait for a thread of the server and the way there and
// back.
absl::StatusOr<std::unique_ptr<Caller>> StartProbe(const std::string& server, double per_second);

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_LOOK_UPS_H_
