#ifndef HONE_SERVER_TUNER_COST_MODEL_REGISTRY_H_
#define HONE_SERVER_TUNER_COST_MODEL_REGISTRY_H_

#include <string>
#include <vector>

namespace hone::cost_model {

// The description of a registered model.
struct CostModelInfo {
  std::string name;
  std::string feature_set;  // the default; "": reads no features
  bool any_features;        // accepts CostModelOptions::feature_set
  bool has_spread;          // fills Prediction::spread once trained
  std::string missing;      // what this build lacks and how to get it; "": nothing
};

// Returns all registered models, including those that this build cannot make. CostModelNames
// (cost_model.h) returns the names of the others.
std::vector<CostModelInfo> CostModelInfos();

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_REGISTRY_H_
