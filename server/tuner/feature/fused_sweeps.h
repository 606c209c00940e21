#ifndef HONE_SERVER_TUNER_FEATURE_FUSED_SWEEPS_H_
#define HONE_SERVER_TUNER_FEATURE_FUSED_SWEEPS_H_

#include "common/ir/index.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {

// Returns how often a fused loop repeats its sweep through the data of an access: a loop p over 14
// rows and 21 columns sweeps 14 times through what only depends on p % 21. REQUIRES: the access
// varies with the loop.
double SweepsOf(const ir::AtomTable& atoms, const Statement& statement, const Access& access,
                const NestLoop& loop);

}  // namespace hone::feature

#endif  // HONE_SERVER_TUNER_FEATURE_FUSED_SWEEPS_H_
