#include "common/ir/signature.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ir/workload_parser.h"

namespace hone::ir {

std::string TypesOf(const Workload& workload, const std::vector<BufferId>& ids) {
  return absl::StrJoin(ids, ", ", [&](std::string* out, BufferId id) {
    out->append(TypeText(workload.tensors[id].dtype, workload.tensors[id].shape));
  });
}

std::string SignatureOf(const Workload& workload) {
  return absl::StrCat(workload.name, "(", TypesOf(workload, workload.Inputs()), ") -> ",
                      TypesOf(workload, workload.Outputs()));
}

std::string SignatureOfText(const std::string& text) {
  const absl::StatusOr<Workload> workload = ParseWorkload(text);
  return workload.ok() ? SignatureOf(*workload) : text.substr(0, text.find('\n'));
}

}  // namespace hone::ir
