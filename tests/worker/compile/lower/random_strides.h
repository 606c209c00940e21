#ifndef HONE_TESTS_WORKER_COMPILE_LOWER_RANDOM_STRIDES_H_
#define HONE_TESTS_WORKER_COMPILE_LOWER_RANDOM_STRIDES_H_

#include "common/base/rng.h"
#include "common/ir/workload.h"
#include "worker/compile/lower/layout.h"

namespace hone::lower {

// Strides for the arguments of a workload, as if each were a slice of a larger tensor along one
// axis. About every third argument stays dense. The outputs of one stage get equal strides, and
// none if the stage also computes a tensor that is not an output.
ArgumentStrides RandomStrides(const ir::Workload& workload, Rng& rng);

}  // namespace hone::lower

#endif  // HONE_TESTS_WORKER_COMPILE_LOWER_RANDOM_STRIDES_H_
