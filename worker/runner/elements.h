#ifndef HONE_WORKER_RUNNER_ELEMENTS_H_
#define HONE_WORKER_RUNNER_ELEMENTS_H_

#include <cstdint>

#include "worker/runner/signature.h"

namespace hone::runner {

// How inputs are filled.
enum class Filling {
  // Integer inputs that declare a bound are uniform in [0, bound) in both cases.
  kReal,     // uniform in the range of the input (input_ranges.h); integer types in [-8, 7],
             // unsigned ones in [0, 15]
  kInteger,  // integers in [-3, 3] (unsigned: [0, 3]); sums of their products are exact in any
             // order
};

// Fills a tensor. Element i of tensor `number` depends only on (seed, number, i) and the filling,
// so it is the same on every machine.
void FillTensor(const TensorSpec& spec, Filling filling, uint64_t seed, int number, void* data);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_ELEMENTS_H_
