#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::Status ReorderBy(ir::Program& program, absl::Span<const NodeId> loops,
                       absl::string_view orders, int64_t choice) {
  const std::vector<absl::string_view> all = absl::StrSplit(orders, '|');
  if (choice < 0 || choice >= static_cast<int64_t>(all.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("reorder_by: there is no order number ", choice, " in \"", orders, "\""));
  }
  std::vector<NodeId> order;
  std::vector<bool> used(loops.size(), false);
  for (absl::string_view word :
       absl::StrSplit(all[static_cast<size_t>(choice)], ' ', absl::SkipEmpty())) {
    size_t place = 0;
    if (!absl::SimpleAtoi(word, &place) || place >= loops.size() || used[place]) {
      return absl::InvalidArgumentError(
          absl::StrCat("reorder_by: \"", all[static_cast<size_t>(choice)], "\" is no order of ",
                       loops.size(), " loops, counted from 0"));
    }
    used[place] = true;
    order.push_back(loops[place]);
  }
  if (order.size() != loops.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("reorder_by: \"", all[static_cast<size_t>(choice)], "\" orders ", order.size(),
                     " loops, not the ", loops.size(), " that are given"));
  }
  return Reorder(program, order);
}

absl::Status ApplyReorderBy(Call& call) {
  HONE_ASSIGN_OR_RETURN(const ir::Extent choice, call.Int(0));
  HONE_ASSIGN_OR_RETURN(const std::string orders, call.Text(1));
  std::vector<NodeId> loops;
  for (int i = 2; i < call.operands(); ++i) {
    HONE_ASSIGN_OR_RETURN(loops.emplace_back(), call.Loop(i));
  }
  return ReorderBy(call.program(), loops, orders, choice.value);
}

}  // namespace hone::schedule
