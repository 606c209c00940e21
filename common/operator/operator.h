#ifndef HONE_COMMON_OPERATOR_OPERATOR_H_
#define HONE_COMMON_OPERATOR_OPERATOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"

namespace hone::op {

// The arguments of an operator, checked and complete: every key has a value, except one whose value
// nothing asks for (see KeyInfo::default_key).
struct Arguments {
  std::map<std::string, int64_t, std::less<>> values;
  ir::DType dtype = ir::DType::kF32;  // of the inputs
  ir::DType acc = ir::DType::kF32;    // that the operator computes in and its results have
  int64_t operator[](absl::string_view key) const { return values.find(std::string(key))->second; }
};

struct KeyInfo {
  std::string name;
  std::string meaning;
  int64_t default_value = -1;  // -1: must be given, unless default_key says otherwise
  int64_t minimum = 1;
  std::string default_key = "";  // the key whose value this one takes unless given; that one may be
                                 // missing where nothing takes it
  int64_t maximum = ir::kMaxElements;
  bool Required() const { return default_value < 0 && default_key.empty(); }
};

// An input or output of an operator.
struct TensorInfo {
  std::string name;
  std::string layout;  // its dimensions, outermost first, in keys and the names that the meaning
                       // explains: "n h w ci"
  bool constant = false;
  std::string dtype = "";  // "": the key dtype (of outputs: acc)
};

// Which scalar types an operator takes.
enum class Types {
  kNumbers,  // keys dtype and acc, any
  kFloats,   // the same; what it computes in must be a float
  kFixed,    // those that its tensors say; it has neither key
};

// One entry of the library.
struct OperatorInfo {
  std::string name;
  std::string meaning;        // a formula or a sentence
  std::string note = "";      // special values, accuracy and limits that the formula does not tell
  std::vector<KeyInfo> keys;  // "dtype" and "acc" go without saying, see types
  std::vector<TensorInfo> inputs, outputs;  // in the order of the workload's
  Types types = Types::kNumbers;
  absl::StatusOr<ir::Workload> (*build)(const Arguments&) = nullptr;
};

// Every operator, sorted by name. To add one: see README.md.
const std::vector<OperatorInfo>& Operators();
// nullptr when there is none of that name.
const OperatorInfo* FindOperator(absl::string_view name);

// Builds a workload from words like {"m=512", "n=512", "k=64", "dtype=f32"}.
// NotFound: no operator of that name (the message suggests the nearest). InvalidArgument: an
// unknown, repeated, missing or malformed key, a value outside its range, a type that does not fit,
// or shapes that do not fit or overflow; the message says which.
absl::StatusOr<ir::Workload> BuildWorkload(absl::string_view name,
                                           absl::Span<const std::string> words);

// The name of `known` nearest to `word` by edit distance, or "" when none is near.
std::string Nearest(absl::string_view word, absl::Span<const std::string> known);

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_OPERATOR_H_
