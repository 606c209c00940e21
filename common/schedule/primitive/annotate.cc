#include "common/schedule/primitive/annotate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;
using Key = ir::Annotation::Key;

namespace {

struct Hint {
  Key key;
  absl::string_view where;  // where it is allowed
  bool (*fits)(const ir::Program&, NodeId);
};

bool IsLoopOf(const ir::Program& program, NodeId node, ir::LoopKind kind) {
  return program.IsLoop(node) && program.node(node).loop == kind;
}

// The other keys of common/ir/annotation.h have their own primitives.
constexpr Hint kHints[] = {
    {Key::kOmpSchedule, "a parallel loop",
     [](const ir::Program& p, NodeId node) { return IsLoopOf(p, node, ir::LoopKind::kParallel); }},
    {Key::kPrefetch, "a serial loop",
     [](const ir::Program& p, NodeId node) { return IsLoopOf(p, node, ir::LoopKind::kSerial); }},
    {Key::kNonTemporal, "a block that writes an output of the workload and does not reduce",
     [](const ir::Program& p, NodeId node) {
       return p.IsBlock(node) && p.BlockOf(node).reducer == ir::Reducer::kNone &&
              p.buffers[p.BlockOf(node).outputs[0]].output;
     }},
};

}  // namespace

absl::Status Annotate(ir::Program& program, NodeId node, absl::string_view key, int64_t value) {
  std::string names;
  for (const Hint& hint : kHints) {
    const ir::AnnotationInfo& info = ir::InfoOf(hint.key);
    absl::StrAppend(&names, names.empty() ? "" : ", ", info.name);
    if (info.name != key) continue;
    if (!hint.fits(program, node))
      return Illegal(program, node, absl::StrCat("annotate: ", key, " is for ", hint.where));
    if (value < info.min || value > info.max) {
      return Illegal(
          program, node,
          absl::StrCat("annotate: ", key, " of ", value, "; from ", info.min, " to ", info.max));
    }
    ir::Annotations& annotations = program.node(node).annotations;
    // 0 removes the hint, so that "no prefetch" can be a decision. The loop is then the same as one
    // that was never annotated.
    if (hint.key == Key::kPrefetch && value == 0) {
      annotations.erase(std::remove_if(annotations.begin(), annotations.end(),
                                       [&](const auto& a) { return a.key == hint.key; }),
                        annotations.end());
      return absl::OkStatus();
    }
    ir::Set(annotations, hint.key, value);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("annotate: unknown key '", key.substr(0, 64), "'; known: ", names));
}

absl::Status ApplyAnnotate(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId node, call.Node(0));
  HONE_ASSIGN_OR_RETURN(const std::string key, call.Text(1));
  HONE_ASSIGN_OR_RETURN(const ir::Extent value, call.Int(2));
  return Annotate(call.program(), node, key, value.value);
}

}  // namespace hone::schedule
