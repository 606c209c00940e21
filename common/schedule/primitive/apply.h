#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_APPLY_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_APPLY_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/ir/program.h"
#include "common/schedule/primitive/data.h"
#include "common/schedule/replay.h"

// The functions that the registry's table refers to. Each reads its operands from a call and
// applies one primitive.
namespace hone::schedule {

// Reads the operand `next` as a parameter of a primitive's function, and advances to the next one.
// The registry says whether a node must be a block or a loop.
inline absl::Status Read(Call& call, int& next, ir::NodeId& node) {
  HONE_ASSIGN_OR_RETURN(node, call.NodeOf(next++));
  return absl::OkStatus();
}
inline absl::Status Read(Call& call, int& next, ir::Extent& number) {
  HONE_ASSIGN_OR_RETURN(number, call.Int(next++));
  return absl::OkStatus();
}
inline absl::Status Read(Call& call, int& next, int64_t& number) {
  HONE_ASSIGN_OR_RETURN(const ir::Extent extent, call.Int(next++));
  number = extent.value;
  return absl::OkStatus();
}
inline absl::Status Read(Call& call, int& next, std::string& text) {
  HONE_ASSIGN_OR_RETURN(text, call.Text(next++));
  return absl::OkStatus();
}
inline absl::Status Read(Call& call, int& next, ir::Scope& scope) {
  HONE_ASSIGN_OR_RETURN(const std::string name, call.Text(next++));
  HONE_ASSIGN_OR_RETURN(scope, ScopeFromName(name));
  return absl::OkStatus();
}
// A list takes all operands that are left.
template <typename T>
absl::Status Read(Call& call, int& next, absl::InlinedVector<T, 16>& list) {
  while (next < call.operands()) HONE_RETURN_IF_ERROR(Read(call, next, list.emplace_back()));
  return absl::OkStatus();
}

// What holds the operand while the function runs.
template <typename Parameter>
struct Held {
  using Type = Parameter;
};
template <>
struct Held<absl::string_view> {
  using Type = std::string;
};
template <typename T>
struct Held<absl::Span<const T>> {
  using Type = absl::InlinedVector<T, 16>;
};

template <typename Result, typename... Parameters>
absl::Status ApplyFunction(Call& call, Result (*function)(ir::Program&, Parameters...)) {
  std::tuple<typename Held<std::remove_cvref_t<Parameters>>::Type...> operands;
  int next = 0;
  absl::Status status;
  const auto read = [&](auto& operand) {
    if (status.ok()) status = Read(call, next, operand);
  };
  std::apply([&](auto&... each) { (read(each), ...); }, operands);
  HONE_RETURN_IF_ERROR(status);
  const Result result =
      std::apply([&](const auto&... each) { return function(call.program(), each...); }, operands);
  if constexpr (std::is_same_v<Result, absl::Status>) {
    return result;
  } else {
    HONE_RETURN_IF_ERROR(result.status());
    if constexpr (std::is_same_v<Result, absl::StatusOr<ir::NodeId>>)
      return call.Return({*result});
    else
      return call.Return(*result);
  }
}

// Applies a primitive whose operands are the parameters of its function, in order, and whose
// results are those of the function.
template <auto kFunction>
absl::Status Apply(Call& call) {
  return ApplyFunction(call, kFunction);
}

// The other primitives.
absl::Status ApplyBlock(Call& call);
absl::Status ApplyComputeAt(Call& call);
absl::Status ApplyLoops(Call& call);
absl::Status ApplyRegisterTile(Call& call);
absl::Status ApplyReorderBy(Call& call);
absl::Status ApplyRfactor(Call& call);
absl::Status ApplySampleCategorical(Call& call);
absl::Status ApplySampleComputeLocation(Call& call);
absl::Status ApplySamplePerfectTile(Call& call);
absl::Status ApplySampleRegisterTile(Call& call);
absl::Status ApplySampleTile(Call& call);
absl::Status ApplyStorageAlign(Call& call);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_APPLY_H_
