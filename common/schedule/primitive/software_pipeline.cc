#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/annotate.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

namespace {

// Whether an earlier child of the loop writes what a later one reads.
bool HasProducer(const ir::Program& program, NodeId loop) {
  const auto& children = program.node(loop).children;
  for (size_t later = 1; later < children.size(); ++later) {
    for (NodeId reader : program.BlocksUnder(children[later])) {
      for (size_t earlier = 0; earlier < later; ++earlier) {
        for (NodeId writer : program.BlocksUnder(children[earlier])) {
          for (ir::BufferId output : program.BlockOf(writer).outputs) {
            if (program.Reads(program.BlockOf(reader), output)) return true;
          }
        }
      }
    }
  }
  return false;
}

}  // namespace

absl::Status SoftwarePipeline(ir::Program& program, NodeId loop, int64_t stages) {
  constexpr ir::Annotation::Key kKey = ir::Annotation::Key::kSoftwarePipeline;
  if (program.node(loop).loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "software_pipeline: the loop is not serial");
  const ir::AnnotationInfo& info = ir::InfoOf(kKey);
  if (stages < info.min || stages > info.max) {
    return Illegal(
        program, loop,
        absl::StrCat("software_pipeline: ", stages, " stages; from ", info.min, " to ", info.max));
  }
  if (!HasProducer(program, loop))
    return Illegal(program, loop,
                   "software_pipeline: no nest in the loop reads what an earlier one computes");
  ir::Set(program.node(loop).annotations, kKey, stages);
  return absl::OkStatus();
}

absl::Status ApplySoftwarePipeline(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(0));
  HONE_ASSIGN_OR_RETURN(const ir::Extent stages, call.Int(1));
  return SoftwarePipeline(call.program(), loop, stages.value);
}

}  // namespace hone::schedule
