#ifndef HONE_SERVER_COST_MODEL_REGISTRY_H_
#define HONE_SERVER_COST_MODEL_REGISTRY_H_

#include <string>
#include <vector>

namespace hone::cost_model {

// What there is to know of a registered model without making one.
struct CostModelInfo {
  std::string name;
  std::string feature_set;  // its own; "" where it reads none
  bool any_features;        // it also learns from other sets (CostModelOptions::feature_set)
  bool has_spread;          // Prediction::spread is filled once it is trained
  std::string missing;      // what this build lacks for it, and how to get it; "": nothing
};

// Every registered model, those that this build cannot make among them. CostModelNames of
// cost_model.h are the names of the others.
std::vector<CostModelInfo> CostModelInfos();

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_REGISTRY_H_
