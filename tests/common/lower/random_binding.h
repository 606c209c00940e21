#ifndef HONE_TESTS_COMMON_LOWER_RANDOM_BINDING_H_
#define HONE_TESTS_COMMON_LOWER_RANDOM_BINDING_H_

#include "common/base/rng.h"
#include "common/ir/program.h"

namespace hone::lower {

// Binds loops of each nest to axes of a GPU as far as that is legal: some of the outermost to
// blocks, and loops below, in sibling nests as well, to threads. Splits loops where that gives the
// threads of sibling nests equal numbers.
void BindAtRandom(ir::Program& program, Rng& rng);

}  // namespace hone::lower

#endif  // HONE_TESTS_COMMON_LOWER_RANDOM_BINDING_H_
