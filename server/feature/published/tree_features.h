#ifndef HONE_SERVER_FEATURE_PUBLISHED_TREE_FEATURES_H_
#define HONE_SERVER_FEATURE_PUBLISHED_TREE_FEATURES_H_

#include "server/feature/feature_set.h"

namespace hone::feature {

// The column that says which row of the candidate is the loop around this one; -1: none.
inline constexpr int kTreeParentColumn = 0;
// Loops beyond are left out.
inline constexpr int kTreeLoops = 256;

// "tree": the loop tree, one row per loop, for models that read a program's structure (AutoTVM's
// TreeGRU). The first column is the number of the parent's row among the candidate's, the others
// are the loop's features (loop_blocks.h). A row comes after its parent's. A program without loops
// has one row that is 0 but for the parent, -1.
const FeatureSet& TreeFeatures();

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_PUBLISHED_TREE_FEATURES_H_
