#ifndef HONE_WORKER_RUNNER_ELEMENTS_H_
#define HONE_WORKER_RUNNER_ELEMENTS_H_

#include <cstdint>

#include "common/ir/dtype.h"
#include "common/ir/scalar.h"
#include "worker/runner/signature.h"

namespace hone::runner {

// Element access by dtype. Integers and bool are whole numbers. A value that is written is cast to
// the dtype (see ir::CastTo).
ir::Scalar ReadElement(ir::DType dtype, const void* data, int64_t index);
void WriteElement(ir::DType dtype, void* data, int64_t index, ir::Scalar value);

// What inputs are filled with.
enum class Filling {
  kReal,     // uniform in [-1, 1); integer types in [-8, 7], unsigned ones in [0, 15]
  kInteger,  // integers in [-3, 3] (unsigned: [0, 3]): sums of products of them are exact in any
             // order
};

// Fills a tensor: element i of tensor `number` is a function of (seed, number, i) and the filling,
// the same on every machine.
void FillTensor(const TensorSpec& spec, Filling filling, uint64_t seed, int number, void* data);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_ELEMENTS_H_
