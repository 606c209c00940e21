#ifndef HONE_COMMON_OPERATOR_OPERATOR_H_
#define HONE_COMMON_OPERATOR_OPERATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"

namespace hone::op {

struct KeyInfo {
  std::string name;
  std::string meaning;
  int64_t default_value = -1;  // -1: required unless default_key is set
  int64_t minimum = 1;
  // The key whose value is the default of this one. It may be missing if no key needs its value.
  std::string default_key = "";
  int64_t maximum = ir::kMaxElements;
  bool Required() const { return default_value < 0 && default_key.empty(); }
};

// An input or output of an operator.
struct TensorInfo {
  std::string name;
  // Its dimensions, outermost first, in terms of keys and names that the meaning explains: "n h w
  // ci".
  std::string layout;
  bool constant = false;
  std::string dtype = "";  // "": the key dtype (for outputs: acc)
};

// The scalar types that an operator supports.
enum class Types {
  kNumbers,  // keys dtype and acc, any type
  kFloats,   // the same, but the compute type must be a float
  kFixed,    // fixed by the statements, with results of type i32; no such keys
};

// One entry of the library.
struct OperatorInfo {
  std::string name;
  std::string meaning;    // a formula or a sentence
  std::string note = "";  // special values, accuracy and limits beyond the formula
  Types types = Types::kNumbers;
  std::vector<KeyInfo> keys = {};                     // "dtype" and "acc" are implied by `types`
  std::vector<std::string> statements = {};           // of the workload, as templates; README.md
  std::vector<TensorInfo> inputs = {}, outputs = {};  // as the statements declare them
};

// All operators, sorted by name. README.md says how to add one.
const std::vector<OperatorInfo>& Operators();
// nullptr if there is no operator of that name.
const OperatorInfo* FindOperator(absl::string_view name);

// Builds a workload from words like {"m=512", "n=512", "k=64", "dtype=f32"}. NotFound: unknown
// operator; the message suggests the nearest name. InvalidArgument: an unknown, repeated, missing
// or malformed key, a value out of range, an unsuitable type, or shapes that do not match or
// overflow; the message says which.
absl::StatusOr<ir::Workload> BuildWorkload(absl::string_view name,
                                           absl::Span<const std::string> words);

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_OPERATOR_H_
