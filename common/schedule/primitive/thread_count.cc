#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::Status ThreadCount(ir::Program& program, NodeId loop, ir::Extent threads) {
  constexpr ir::Annotation::Key kKey = ir::Annotation::Key::kThreads;
  if (program.node(loop).loop != ir::LoopKind::kParallel)
    return Illegal(program, loop, "thread_count: the loop is not parallel");
  const ir::AnnotationInfo& info = ir::InfoOf(kKey);
  if (threads.value < info.min || threads.value > info.max) {
    return Illegal(program, loop,
                   absl::StrCat("thread_count: ", threads.value, " threads; from ", info.min,
                                " to ", info.max));
  }
  ir::Set(program.node(loop).annotations, kKey, threads.value);
  return absl::OkStatus();
}

absl::Status ApplyThreadCount(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(0));
  HONE_ASSIGN_OR_RETURN(const ir::Extent threads, call.Int(1));
  return ThreadCount(call.program(), loop, threads);
}

}  // namespace hone::schedule
