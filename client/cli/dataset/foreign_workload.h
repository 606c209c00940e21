#ifndef HONE_CLIENT_CLI_DATASET_FOREIGN_WORKLOAD_H_
#define HONE_CLIENT_CLI_DATASET_FOREIGN_WORKLOAD_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

// Workloads of other systems in Hone's language.
namespace hone::cli {

struct ForeignWorkload {
  std::string text;  // "" if the operator or its arguments are unknown here
  // Of each of Ansor's stages, the tensor of the text that has its elements; "" for padding, which
  // the text does where it reads.
  std::vector<std::string> stages;
  // The constant whose layout Ansor may choose ("" for none); nullopt if that is unknown.
  std::optional<std::string> free_layout;
};

// `key`: a JSON list of a registered name, or of a hash of the computation, and arguments. The hash
// is the MD5 of the computation's text without the shapes and without the arguments of calls. So it
// proves the computation whose text has this hash, but does not tell the amount of padding.
// InvalidArgument: it is not such a list.
absl::StatusOr<ForeignWorkload> WorkloadOfAnsor(const std::string& key);

// The text; "" if the operator or its arguments are unknown here.
// `task`: "conv2d_NCHWc.x86", … The layouts and templates after the operator's name do not change
// what is computed.
std::string WorkloadOfAutoTvm(const std::string& task, const nlohmann::json& arguments);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_FOREIGN_WORKLOAD_H_
