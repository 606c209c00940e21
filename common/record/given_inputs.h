#ifndef HONE_COMMON_RECORD_GIVEN_INPUTS_H_
#define HONE_COMMON_RECORD_GIVEN_INPUTS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::record {

// The inputs that workers make for measuring (worker/runner/signature.h), as results name them.
// The number is raised when they change, so that latencies of different inputs are not compared.
inline constexpr char kSeededInputs[] = "seeded-2";

// What users measure on instead: the elements of some inputs of a workload, by the number of the
// input, in the layout of the kernel's buffers. Other inputs are seeded. Results name them by the
// digest of this form, which the server and its workers transfer like an artifact:
//   "HONEINP1"; u64 number of inputs; for each u64 input and u64 bytes; then their elements.
using GivenInputs = std::map<int, absl::string_view>;
std::string EncodeGivenInputs(const std::map<int, std::string>& inputs);
// InvalidArgument: malformed. The result refers to `bytes`.
absl::StatusOr<GivenInputs> DecodeGivenInputs(absl::string_view bytes);

// The name of the reference of a workload on data of a user, 32 hex digits; on seeded inputs
// (given_digest is ""), the digest of the workload.
std::string ReferenceKey(absl::string_view workload_digest, absl::string_view given_digest);

// Whether results that name these inputs were measured on data of a user.
bool AreGiven(absl::string_view inputs);

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_GIVEN_INPUTS_H_
