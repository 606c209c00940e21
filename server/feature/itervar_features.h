#ifndef HONE_SERVER_FEATURE_ITERVAR_FEATURES_H_
#define HONE_SERVER_FEATURE_ITERVAR_FEATURES_H_

#include "server/feature/feature_set.h"

namespace hone::feature {

// What a row holds; what a program has beyond it is left out.
inline constexpr int kItervarLoops = 32;
inline constexpr int kItervarTouches = 8;

// "itervar": AutoTVM's features of every loop (Chen et al., NeurIPS 2018), one row per program, a
// block of columns per loop in order of first appearance:
//    4  length, nest level, product of the lengths from the outside and from the inside
//   12  what the loop is, one of: GPU axes, unrolled, vectorized, parallel, serial, tensor (ours)
//    3  additions, multiplications, divisions of the statements whose innermost loop it is
//  8×6  per access under the loop: stride, mod, count, reuse, thread_count, thread_reuse (touch.h)
// Numbers as sign(x)·log2(|x| + 1); absent loops and accesses are 0.
//
// Two differences from public code, which sorts accesses by the names of buffers and pads to the
// longest program of a batch: here they come in order of execution, because names mean nothing, and
// rows have one length. As there, `mod` is always -1 where there is an access: it was never filled.
const FeatureSet& ItervarFeatures();

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_ITERVAR_FEATURES_H_
