#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/annotate.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

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
  const bool shared = std::any_of(above.begin(), above.end(), [&](NodeId loop) {
    return std::all_of(readers.begin(), readers.end(),
                       [&](NodeId reader) { return program.IsUnder(reader, loop); });
  });
  if (!shared || readers.empty())
    return Illegal(program, block,
                   "double_buffer: no loop is around the block and all that read its result");
  ir::Set(program.node(block).annotations, ir::Annotation::Key::kDoubleBuffer, 1);
  return absl::OkStatus();
}

absl::Status ApplyDoubleBuffer(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  return DoubleBuffer(call.program(), block);
}

}  // namespace hone::schedule
