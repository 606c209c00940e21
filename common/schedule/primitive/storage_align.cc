#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/data.h"
#include "common/schedule/primitive/tensor_nest.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::Status AlignStorage(ir::Program& program, NodeId block, ir::StorageAlign align) {
  constexpr int64_t kMaxFactor = 1 << 20;
  if (program.BlockOf(block).outputs.size() != 1)
    return Illegal(program, block, "storage_align: the block writes several buffers");
  const ir::BufferId id = program.BlockOf(block).outputs[0];
  ir::Buffer& buffer = program.buffers[id];
  if (buffer.output)
    return Illegal(program, block,
                   absl::StrCat("storage_align: ", buffer.name, " is an output of the workload"));
  for (NodeId user : program.AllBlocks()) {
    const auto& outputs = program.BlockOf(user).outputs;
    const bool uses = std::find(outputs.begin(), outputs.end(), id) != outputs.end() ||
                      program.Reads(program.BlockOf(user), id);
    if (uses && InTensorNest(program, user))
      return Illegal(program, user,
                     absl::StrCat("storage_align: a tensor nest uses ", program.buffers[id].name));
  }
  if (align.axis < 0 || align.axis + 1 >= static_cast<int>(buffer.shape.size())) {
    return Illegal(program, block,
                   absl::StrCat("storage_align: axis ", align.axis, " of ", buffer.name,
                                "; one before the last of ", buffer.shape.size()));
  }
  if (align.factor < 1 || align.factor > kMaxFactor || align.offset < 0 ||
      align.offset >= align.factor) {
    return Illegal(
        program, block,
        absl::StrCat("storage_align: factor ", align.factor, " and offset ", align.offset,
                     "; 1 to ", kMaxFactor, ", and the offset below the factor"));
  }
  auto at = std::find_if(buffer.aligns.begin(), buffer.aligns.end(),
                         [&](const ir::StorageAlign& a) { return a.axis >= align.axis; });
  if (at != buffer.aligns.end() && at->axis == align.axis) {
    *at = align;
  } else {
    buffer.aligns.insert(at, align);
  }
  return absl::OkStatus();
}

absl::Status ApplyStorageAlign(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  HONE_ASSIGN_OR_RETURN(const int axis, call.IntBetween(1, 0, ir::kMaxRank));
  HONE_ASSIGN_OR_RETURN(const ir::Extent factor, call.Int(2));
  HONE_ASSIGN_OR_RETURN(const ir::Extent offset, call.Int(3));
  return AlignStorage(call.program(), block, {axis, factor.value, offset.value});
}

}  // namespace hone::schedule
