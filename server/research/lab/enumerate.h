#ifndef HONE_SERVER_RESEARCH_LAB_ENUMERATE_H_
#define HONE_SERVER_RESEARCH_LAB_ENUMERATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "server/tuner/space/design_space.h"

namespace hone::lab {

struct Enumerated {
  std::vector<int64_t> decisions;
  Digest program;  // structural digest: equal for vectors that make the same program
};

// Returns every legal vector of a design space whose trace replays, in the order of `grid`.
// ResourceExhausted: there are more than `limit` such vectors, or more than 100 × `limit` vectors
// to try. The space is then too large to be measured completely.
absl::StatusOr<std::vector<Enumerated>> EnumerateCandidates(const space::DesignSpace& space,
                                                            size_t limit);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_ENUMERATE_H_
