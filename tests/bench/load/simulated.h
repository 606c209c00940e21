#ifndef HONE_TESTS_BENCH_LOAD_SIMULATED_H_
#define HONE_TESTS_BENCH_LOAD_SIMULATED_H_

#include <string>

#include "hone/v1/worker.pb.h"

namespace hone::load {

// The capabilities of a board of the host's kind.
v1::Capabilities SimulatedDevice();

// The result of building the lease's candidate, which depends only on the candidate: a name, and
// the bytes that it stands for.
std::string ArtifactName(const v1::Lease& lease);
std::string ArtifactBytes(const std::string& name);

// The result of measuring the lease's candidate, as a runner would report it. The latency depends
// only on the candidate; one candidate in twenty-five fails to compile or takes too long, and one
// far slower than the best stops early. `seed` is for the noise.
v1::MeasureResult SimulatedResult(const v1::Lease& lease, const std::string& artifact_digest,
                                  uint64_t seed);

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_SIMULATED_H_
