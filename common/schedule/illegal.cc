#include <string>

#include "absl/strings/str_cat.h"
#include "common/schedule/primitive.h"

namespace hone::schedule {

absl::Status Illegal(const ir::Program& program, ir::NodeId node, absl::string_view what) {
  const ir::Node& at = program.node(node);
  const std::string name =
      at.kind == ir::Node::Kind::kLoop    ? absl::StrCat("loop ", program.atoms[at.var].name)
      : at.kind == ir::Node::Kind::kBlock ? absl::StrCat("block ", program.BlockOf(node).name)
                                          : "";
  return absl::FailedPreconditionError(absl::StrCat(what, " (", name, ")\n", program.ToText(node)));
}

}  // namespace hone::schedule
