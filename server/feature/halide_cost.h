#ifndef HONE_SERVER_FEATURE_HALIDE_COST_H_
#define HONE_SERVER_FEATURE_HALIDE_COST_H_

#include "common/target/target.h"
#include "server/feature/nest.h"

namespace hone::feature {

// Halide's empirical formula (Mullapudi et al., SIGGRAPH 2016) for the memory of a statement, in
// operations: a byte that a tile loads costs 1 where its data are small and up to 40 where they
// fill the last cache. The tile is the inner part of the nest that makes the sum least.
double HalideMemoryCost(const Statement& statement, const target::Target& target);

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_HALIDE_COST_H_
