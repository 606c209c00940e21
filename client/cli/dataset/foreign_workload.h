#ifndef HONE_CLIENT_CLI_DATASET_FOREIGN_WORKLOAD_H_
#define HONE_CLIENT_CLI_DATASET_FOREIGN_WORKLOAD_H_

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

// Workloads of other systems as texts of Hone's language. "": the operator is unknown here, or its
// arguments are.
namespace hone::cli {

// `key`: a JSON list of a registered name, or of a hash of the computation, and arguments. A hash
// is only known if a public log shows the computation beside it, since the arguments are shapes,
// which do not tell for example a convolution with ReLU from one without. InvalidArgument: it is
// not such a list.
absl::StatusOr<std::string> WorkloadOfAnsor(const std::string& key);

// `task`: "conv2d_NCHWc.x86", … The layouts and templates after the operator's name do not change
// what is computed.
std::string WorkloadOfAutoTvm(const std::string& task, const nlohmann::json& arguments);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_FOREIGN_WORKLOAD_H_
