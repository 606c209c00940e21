#include "common/schedule/primitive/annotate.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/schedule/primitive.h"

namespace hone::schedule {
namespace {

using ir::NodeId;
using Key = ir::Annotation::Key;

struct Hint {
  Key key;
  absl::string_view where;  // where it is allowed
  bool (*fits)(const ir::Program&, NodeId);
};

bool IsLoopOf(const ir::Program& program, NodeId node, ir::LoopKind kind) {
  return program.IsLoop(node) && program.node(node).loop == kind;
}

// The other keys of common/ir/program.h have their own primitives.
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

absl::Status DoubleBuffer(ir::Program& program, NodeId block) {
  const ir::Block& content = program.BlockOf(block);
  if (content.outputs.size() != 1)
    return Illegal(program, block, "double_buffer: the block writes several buffers");
  const ir::Buffer& buffer = program.buffers[content.outputs[0]];
  if (buffer.output)
    return Illegal(program, block,
                   absl::StrCat("double_buffer: ", buffer.name, " is an output of the workload"));
  if (program.WritersOf(content.outputs[0]).size() != 1)
    return Illegal(program, block, "double_buffer: another block writes the same buffer");
  // The loop whose iterations alternate: it contains the block and all its readers.
  const std::vector<NodeId> readers = program.ReadersOf(content.outputs[0]);
  const std::vector<NodeId> above = program.LoopsAbove(block);
  const bool shared = absl::c_any_of(above, [&](NodeId loop) {
    return absl::c_all_of(readers, [&](NodeId reader) { return program.IsUnder(reader, loop); });
  });
  if (!shared || readers.empty())
    return Illegal(program, block,
                   "double_buffer: no loop is around the block and all that read its result");
  ir::Set(program.node(block).annotations, ir::Annotation::Key::kDoubleBuffer, 1);
  return absl::OkStatus();
}

absl::Status AsyncCopy(ir::Program& program, NodeId block) {
  const ir::Block& content = program.BlockOf(block);
  const bool copies =
      content.reducer == ir::Reducer::kNone && program.pool[content.values[0]].op == ir::Op::kLoad;
  if (!copies) return Illegal(program, block, "async_copy: the block does more than copy");
  const ir::Scope scope = program.buffers[content.outputs[0]].scope;
  if (scope != ir::Scope::kShared && scope != ir::Scope::kLocal) {
    return Illegal(program, block,
                   absl::StrCat("async_copy: the copy is in scope ", ir::ScopeName(scope),
                                ", not shared or local"));
  }
  ir::Set(program.node(block).annotations, ir::Annotation::Key::kAsyncCopy, 1);
  return absl::OkStatus();
}

}  // namespace hone::schedule
