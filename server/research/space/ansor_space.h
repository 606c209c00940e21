#ifndef HONE_SERVER_RESEARCH_SPACE_ANSOR_SPACE_H_
#define HONE_SERVER_RESEARCH_SPACE_ANSOR_SPACE_H_

#include "server/tuner/space/maker.h"

namespace hone::space {

// Ansor's rules (Zheng et al., OSDI 2020) instead of Hone's, to compare searches in the space that
// they were published for. On CPUs: inlining, reduction factorization, and multi-level tiling in
// the order S S R S R S by exact factors with innermost parts of at most 64, with the element-wise
// consumer fused at the first or second level, or a write cache there, or neither; the outer tiles
// run on threads, and the innermost one is vectorized; decisions unroll the loops in the last two
// levels, up to 512 statements. There is no packing, no register tile and no other algorithm. On
// GPUs: Hone's rules of the same names, without im2col, because their tiles (blocks, virtual
// threads, threads; S S S R R S R S) are the published ones.
extern const SpaceMaker kAnsorMaker;

}  // namespace hone::space

#endif  // HONE_SERVER_RESEARCH_SPACE_ANSOR_SPACE_H_
