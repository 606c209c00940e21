#ifndef HONE_SERVER_FEATURE_ANALYTIC_FEATURES_H_
#define HONE_SERVER_FEATURE_ANALYTIC_FEATURES_H_

#include "server/feature/feature_set.h"

namespace hone::feature {

// "analytic": what can be computed of a program's speed without measuring (analytic_terms.h), one
// row per program: sums of the terms over its statements, each divided by the statement's speedup
// where it is time of the cores; then, of the statement with the largest bound, how well it uses
// the machine; last the two terms of Halide's formula. Everything as log2(x + 1), but `fill` and
// `wave` (share of the cores' time that the parallel iterations fill), which are in (0, 1].
const FeatureSet& AnalyticFeatures();

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_ANALYTIC_FEATURES_H_
