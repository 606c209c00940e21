#include "common/ir/program.h"
#include "common/schedule/primitive.h"

// What would be a guard for each number of a program: its text, which only messages need, and its
// digest, by which a rewrite makes sure that nothing came before it. That is for the concrete
// replay to say; recordings that it does not agree with are refused.
namespace hone::ir {

std::string Program::ToText(NodeId) const { return ""; }

Digest Program::StructuralDigest() const { return {}; }

}  // namespace hone::ir

namespace hone::schedule {

absl::Status Illegal(const ir::Program&, ir::NodeId, absl::string_view what) {
  return absl::FailedPreconditionError(what);
}

}  // namespace hone::schedule
