#ifndef HONE_SERVER_FEATURE_PUBLISHED_KNOB_FEATURES_H_
#define HONE_SERVER_FEATURE_PUBLISHED_KNOB_FEATURES_H_

#include "server/feature/feature_set.h"

namespace hone::feature {

// The decisions that a row holds; AutoTVM's largest templates have half as many.
inline constexpr int kKnobDecisions = 64;

// "knob": AutoTVM's configuration features, the decisions as they are, one row per program: factors
// of tiles, chosen values of the rest, in the order of the design space. A decision means something
// within its design space only, so the space is a column too: a model that splits by it learns each
// space on its own. Only ExtractCandidate gives them (a program does not carry its decisions);
// Extract is FailedPrecondition. InvalidArgument: more than kKnobDecisions.
const FeatureSet& KnobFeatures();

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_PUBLISHED_KNOB_FEATURES_H_
