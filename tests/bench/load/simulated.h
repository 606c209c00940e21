#ifndef HONE_TESTS_BENCH_LOAD_SIMULATED_H_
#define HONE_TESTS_BENCH_LOAD_SIMULATED_H_

#include <string>

#include "hone/v1/worker.pb.h"

namespace hone::load {

// What a board of the host's kind says that it is and can do.
v1::Capabilities SimulatedDevice();

// What a builder would make of the lease's candidate: the same for the same candidate. A name, and
// the bytes that it stands for.
std::string ArtifactName(const v1::Lease& lease);
std::string ArtifactBytes(const std::string& name);

// What measuring the lease's candidate comes to, as a runner would report it: the candidate alone
// decides how fast it is, one in twenty-five does not compile or takes too long, and a candidate
// far slower than the best stops early. `seed`: of the noise.
v1::MeasureResult SimulatedResult(const v1::Lease& lease, const std::string& artifact_digest,
                                  uint64_t seed);

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_SIMULATED_H_
