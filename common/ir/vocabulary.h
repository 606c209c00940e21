#ifndef HONE_COMMON_IR_VOCABULARY_H_
#define HONE_COMMON_IR_VOCABULARY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/expr.h"

// The operations and reducers of the text form of workloads, as users write them. The parser, its
// errors, `hone operators` and docs/language.md are generated from these tables.
namespace hone::ir {

struct Function {
  enum class Takes : uint8_t { kNumbers, kIntegers, kFloats, kBools, kAny, kIndex };
  Op op;
  absl::string_view usage;  // "select(condition, a, b)", "a + b"
  Takes takes;
  absl::string_view meaning;

  absl::string_view name() const { return InfoOf(op).name; }
  // Whether it is written as name(…), not between or before its operands.
  bool IsCalled() const;
};
absl::string_view TakesText(Function::Takes takes);

// All operations that can be written, in the order of docs/language.md.
absl::Span<const Function> Functions();
// REQUIRES one of Functions().
const Function& FunctionOf(Op op);
// Returns the function with this name, or nullptr if the name is unknown.
const Function* FindFunction(absl::string_view name);

struct ReducerInfo {
  Reducer reducer;
  absl::string_view usage;  // "sum(k: n) x"
  absl::string_view meaning;

  absl::string_view name() const { return ReducerName(reducer); }
};
absl::Span<const ReducerInfo> Reducers();

// The end of an error about an unknown function or reducer: the nearest one, and a list of all.
std::string KnownFunctions(absl::string_view unknown);
std::string KnownReducers(absl::string_view unknown);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_VOCABULARY_H_
