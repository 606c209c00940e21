#include "common/ir/signature.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ir/workload_parser.h"

namespace hone::ir {

std::string SignatureOf(const Workload& workload) {
  const auto types = [&](const std::vector<BufferId>& ids) {
    return absl::StrJoin(ids, ", ", [&](std::string* out, BufferId id) {
      out->append(TypeText(workload.tensors[id].dtype, workload.tensors[id].shape));
    });
  };
  return absl::StrCat(workload.name, "(", types(workload.Inputs()), ") -> ",
                      types(workload.Outputs()));
}

std::string SignatureOfText(const std::string& text) {
  const absl::StatusOr<Workload> workload = ParseWorkload(text);
  return workload.ok() ? SignatureOf(*workload) : text.substr(0, text.find('\n'));
}

}  // namespace hone::ir
