#ifndef HONE_SERVER_FEATURE_PUBLISHED_ITERVAR_FEATURES_H_
#define HONE_SERVER_FEATURE_PUBLISHED_ITERVAR_FEATURES_H_

#include "server/feature/feature_set.h"

namespace hone::feature {

// What a row holds; what a program has beyond it is left out.
inline constexpr int kItervarLoops = 32;

// "itervar": AutoTVM's features of every loop (Chen et al., NeurIPS 2018), one row per program: the
// columns of loop_blocks.h per loop, in order of first appearance. Absent loops and accesses are 0.
//
// Two differences from public code, which sorts accesses by the names of buffers and pads to the
// longest program of a batch: here they come in order of execution, because names mean nothing, and
// rows have one length. As there, `mod` is always -1 where there is an access: it was never filled.
const FeatureSet& ItervarFeatures();

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_PUBLISHED_ITERVAR_FEATURES_H_
