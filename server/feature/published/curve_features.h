#ifndef HONE_SERVER_FEATURE_PUBLISHED_CURVE_FEATURES_H_
#define HONE_SERVER_FEATURE_PUBLISHED_CURVE_FEATURES_H_

#include <memory>
#include <string>

#include "server/feature/feature_set.h"

namespace hone::feature {

// Which relation features and how: Chen et al. (NeurIPS 2018) as public code computes them, and
// what Zheng's study of them varies.
struct CurveOptions {
  enum Relation : unsigned {
    kCountToReuse = 1,
    kReuseToCount = 2,
    kCountToTopdown = 4,
    kTopdownToCount = 8,
    kAll = 15,
  };
  int samples = 20;           // points of every curve, at least 1
  unsigned relations = kAll;  // a sum of Relation, not 0
  // Points keep their partner: y is the largest of the loops whose x is not above the threshold, as
  // in the paper. Public code sorts both sides apart, so that a pair can join different loops.
  bool joint = false;
};

// The buffers that a row holds.
inline constexpr int kCurveBuffers = 6;

// Features that do not depend on the number of loops, one row per program. Of every buffer that the
// deepest statements touch (of several accesses to a buffer the last one) each loop around gives
// three numbers, as log2: count and reuse (touch.h), and topdown, the product of the extents down
// to that loop. A relation x → y is sampled at x = 0, 1, …, samples - 1: the y of the largest x not
// above it, and how far below it is. Buffers in order of execution, for names mean nothing; absent
// ones are 0.
std::unique_ptr<FeatureSet> MakeCurveFeatures(std::string name, const CurveOptions& options);

// The registered ones:
const FeatureSet& CurveFeatures();          // "curve": AutoTVM's, 20 samples
const FeatureSet& CurveOneFeatures();       // "curve-one": the fault of old, samples = 1
const FeatureSet& CurveFixFeatures();       // "curve-fix": Zheng's, 30 samples
const FeatureSet& CurveFixReuseFeatures();  // "curve-fix-reuse": his best, count against reuse

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_PUBLISHED_CURVE_FEATURES_H_
