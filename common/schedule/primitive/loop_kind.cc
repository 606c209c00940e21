#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/loops.h"

namespace hone::schedule {
namespace {

using ir::LoopKind;
using ir::NodeId;
using ir::ThreadAxis;

absl::StatusOr<ThreadAxis> AxisFromName(absl::string_view name) {
  std::string names;
  for (int i = 1; i <= static_cast<int>(ThreadAxis::kVThread); ++i) {
    const auto axis = static_cast<ThreadAxis>(i);
    if (ir::ThreadAxisName(axis) == name) return axis;
    absl::StrAppend(&names, i > 1 ? ", " : "", ir::ThreadAxisName(axis));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("bind: unknown axis '", name.substr(0, 64), "'; known: ", names));
}

// Checks that a loop on the axis `outer` may enclose one on the axis `inner`.
absl::Status CheckPair(const ir::Program& program, NodeId at, ThreadAxis outer, ThreadAxis inner) {
  if (outer == inner && outer != ThreadAxis::kVThread) {
    return Illegal(program, at,
                   absl::StrCat("bind: ", ir::ThreadAxisName(outer), " occurs twice on the path"));
  }
  if (IsThreadAxis(outer) && IsBlockAxis(inner))
    return Illegal(program, at, "bind: a blockIdx axis would lie inside a threadIdx axis");
  return absl::OkStatus();
}

absl::Status CheckBelow(const ir::Program& program, NodeId id, ThreadAxis axis) {
  for (NodeId child : program.node(id).children) {
    const ir::Node& node = program.node(child);
    if (node.loop == LoopKind::kParallel)
      return Illegal(program, child, "bind: a loop below is parallel");
    if (node.loop == LoopKind::kBound)
      HONE_RETURN_IF_ERROR(CheckPair(program, child, axis, node.axis));
    HONE_RETURN_IF_ERROR(CheckBelow(program, child, axis));
  }
  return absl::OkStatus();
}

// Checks that the axis has the same extent everywhere in the nest. On a device, each nest is a
// launch.
absl::Status CheckExtent(const ir::Program& program, NodeId id, ThreadAxis axis, int64_t extent) {
  const ir::Node& node = program.node(id);
  if (node.loop == LoopKind::kBound && node.axis == axis && axis != ThreadAxis::kVThread &&
      node.extent.value != extent) {
    return Illegal(program, id,
                   absl::StrCat("bind: ", ir::ThreadAxisName(axis), " has ", node.extent.value,
                                " here, not ", extent));
  }
  for (NodeId child : node.children)
    HONE_RETURN_IF_ERROR(CheckExtent(program, child, axis, extent));
  return absl::OkStatus();
}

// Whether the loop contains one reduction block and all its lanes belong to one element.
bool CombinesLanes(const ir::Program& program, NodeId loop) {
  const ir::Node& node = program.node(loop);
  if (node.children.size() != 1) return false;
  const ir::Block& block = program.BlockOf(node.children[0]);
  return program.IsReductionLoop(loop, block) && !program.IsSpatialLoop(loop, block);
}

}  // namespace

absl::Status Parallel(ir::Program& program, NodeId loop) {
  if (program.node(loop).loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "parallel: the loop is not serial");
  for (NodeId above : program.LoopsAbove(loop)) {
    if (program.node(above).loop == ir::LoopKind::kParallel)
      return Illegal(program, above, "parallel: a loop above is parallel already");
    if (program.node(above).loop == ir::LoopKind::kBound)
      return Illegal(program, above, "parallel: a loop above is bound to a GPU axis");
  }
  const auto visit = [&](auto&& self, NodeId id) -> absl::Status {
    if (id != loop && program.node(id).loop == ir::LoopKind::kParallel) {
      return Illegal(program, id, "parallel: a loop below is parallel already");
    }
    if (program.node(id).loop == ir::LoopKind::kBound)
      return Illegal(program, id, "parallel: a loop below is bound to a GPU axis");
    for (NodeId child : program.node(id).children) HONE_RETURN_IF_ERROR(self(self, child));
    return absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(visit(visit, loop));
  HONE_RETURN_IF_ERROR(CheckConcurrent(program, loop, "parallel", /*privates=*/true));
  program.node(loop).loop = ir::LoopKind::kParallel;
  return absl::OkStatus();
}

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

absl::Status Bind(ir::Program& program, NodeId loop, absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const ThreadAxis axis, AxisFromName(name));
  if (program.node(loop).loop != LoopKind::kSerial)
    return Illegal(program, loop, "bind: the loop is not serial");
  if (!program.node(loop).annotations.empty())
    return Illegal(program, loop, "bind: the loop is annotated");
  for (NodeId above : program.LoopsAbove(loop)) {
    const ir::Node& node = program.node(above);
    if (node.loop == LoopKind::kParallel || node.loop == LoopKind::kVectorized) {
      return Illegal(program, above, "bind: a loop above is parallel or vectorized");
    }
    if (node.loop == LoopKind::kBound)
      HONE_RETURN_IF_ERROR(CheckPair(program, above, node.axis, axis));
  }
  HONE_RETURN_IF_ERROR(CheckBelow(program, loop, axis));
  HONE_RETURN_IF_ERROR(
      CheckExtent(program, program.NestOf(loop), axis, program.node(loop).extent.value));
  HONE_RETURN_IF_ERROR(CheckConcurrent(program, loop, "bind", /*privates=*/true,
                                       /*combines=*/IsThreadAxis(axis)));
  program.node(loop).loop = LoopKind::kBound;
  program.node(loop).axis = axis;
  return absl::OkStatus();
}

absl::Status Vectorize(ir::Program& program, NodeId loop) {
  constexpr int64_t kMaxLanes = 64;
  const ir::Node& node = program.node(loop);
  if (node.loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "vectorize: the loop is not serial");
  if (node.extent.value > kMaxLanes) {
    return Illegal(program, loop,
                   absl::StrCat("vectorize: ", node.extent.value, " lanes; at most ", kMaxLanes));
  }
  for (NodeId child : node.children) {
    if (!program.IsBlock(child))
      return Illegal(program, loop, "vectorize: the loop contains other loops");
  }
  if (!CombinesLanes(program, loop)) {
    HONE_RETURN_IF_ERROR(CheckConcurrent(program, loop, "vectorize", /*privates=*/false));
  }
  program.node(loop).loop = ir::LoopKind::kVectorized;
  return absl::OkStatus();
}

absl::Status Unroll(ir::Program& program, NodeId loop) {
  constexpr int64_t kMaxUnroll = 1024;
  const ir::Node& node = program.node(loop);
  if (node.loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "unroll: the loop is not serial");
  if (node.extent.value > kMaxUnroll) {
    return Illegal(
        program, loop,
        absl::StrCat("unroll: ", node.extent.value, " iterations; at most ", kMaxUnroll));
  }
  program.node(loop).loop = ir::LoopKind::kUnrolled;
  return absl::OkStatus();
}

absl::Status SetLoopKind(ir::Program& program, ir::NodeId loop, int64_t kind) {
  if (kind == kKeepSerial) return absl::OkStatus();
  if (kind == kUnroll) return Unroll(program, loop);
  if (kind == kVectorize) return Vectorize(program, loop);
  return absl::InvalidArgumentError(
      absl::StrCat("loop_kind: ", kind, " is not 0 (serial), 1 (unrolled) or 2 (vectorized)"));
}

}  // namespace hone::schedule
