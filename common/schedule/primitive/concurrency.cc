#include "common/schedule/primitive/concurrency.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/region.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/one_to_one.h"
#include "common/schedule/primitive/tensorize.h"

namespace hone::schedule {
namespace {

using ir::NodeId;

// Whether a loop under the given one carries both spatial and reduction iterations of the block.
bool MixedUnder(const ir::Program& program, const ir::Block& block, NodeId loop) {
  const auto mixed = [&](NodeId at) {
    return program.IsSpatialLoop(at, block) && program.IsReductionLoop(at, block);
  };
  if (block.reducer == ir::Reducer::kNone) return false;
  // A mixed loop occurs in the bindings of both kinds, and few blocks have such a loop.
  std::vector<ir::AtomId> reducing;
  for (const ir::BlockIter& iter : block.iters) {
    if (iter.reduce)
      program.atoms.VisitVars(iter.binding, [&](ir::AtomId var) { reducing.push_back(var); });
  }
  bool any = false;
  for (const ir::BlockIter& iter : block.iters) {
    if (iter.reduce) continue;
    program.atoms.VisitVars(iter.binding,
                            [&](ir::AtomId var) { any |= absl::c_linear_search(reducing, var); });
  }
  if (!any) return false;
  const auto visit = [&](auto&& self, NodeId at) -> bool {
    if (program.IsLoop(at) && mixed(at)) return true;
    return std::any_of(program.node(at).children.begin(), program.node(at).children.end(),
                       [&](NodeId child) { return self(self, child); });
  };
  return visit(visit, loop);
}

// Whether these indices, with the loops above, determine the iteration of the loop.
bool Determines(ir::Program& program, NodeId loop, std::vector<Known> known) {
  std::vector<ir::AtomId> above;
  for (NodeId at : program.LoopsAbove(loop)) above.push_back(program.node(at).var);
  const ir::AtomId var = program.node(loop).var;
  const std::vector<ir::AtomId> determined = Determined(
      program, std::move(known), [&](ir::AtomId v) { return absl::c_linear_search(above, v); },
      var);
  return absl::c_linear_search(determined, var);
}

// Whether different iterations of the loop write different elements, whatever the inner loops do.
// Iterations map one to one to pairs of element and reduction step. If an inner loop carries both,
// another iteration may contain a different step of the same element.
bool WritesApart(ir::Program& program, const ir::Block& block, NodeId loop) {
  if (program.node(loop).extent.value == 1) return true;
  if (block.exact && !MixedUnder(program, block, loop)) return program.IsSpatialLoop(loop, block);
  std::vector<Known> known;
  for (const ir::Index& index : block.indices) known.push_back({program.OverLoops(block, index)});
  return Determines(program, loop, std::move(known));
}

// The same for all blocks under the loop that write a buffer. After loop_partition, the parts of a
// nest may recompute each other's elements.
bool AllWriteApart(ir::Program& program, ir::BufferId buffer, NodeId loop) {
  int writers = 0;
  bool exact = true;
  for (NodeId writer : program.WritersOf(buffer)) {
    if (!program.IsUnder(writer, loop)) continue;
    ++writers;
    exact &= program.BlockOf(writer).exact;
  }
  if (writers < 2 || exact || program.node(loop).extent.value == 1) return true;
  std::vector<Known> known;
  for (const ir::Interval& interval : ir::RegionWritten(program, buffer, loop)) {
    known.push_back({interval.min, interval.extent.value - 1});
  }
  return Determines(program, loop, std::move(known));
}

bool IsPrivate(const ir::Program& program, ir::BufferId buffer, NodeId loop) {
  if (program.buffers[buffer].output) return false;
  const auto under = [&](NodeId user) { return program.IsUnder(user, loop); };
  const std::vector<NodeId> writers = program.WritersOf(buffer),
                            readers = program.ReadersOf(buffer);
  return absl::c_all_of(writers, under) && absl::c_all_of(readers, under);
}

// Checks that threads may combine the partial results that a block has in each iteration.
absl::Status CheckCombined(ir::Program& program, NodeId block, NodeId loop,
                           absl::string_view what) {
  HONE_RETURN_IF_ERROR(CheckPartialReduction(program, block, loop, what));
  for (NodeId above : program.LoopsAbove(block)) {
    const bool bound = program.node(above).loop == ir::LoopKind::kBound;
    if (above == loop || !bound || !program.IsReductionLoop(above, program.BlockOf(block)))
      continue;
    return Illegal(program, above,
                   absl::StrCat(what, ": block ", program.BlockOf(block).name,
                                " would reduce over two loops of threads"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckConcurrent(ir::Program& program, NodeId loop, absl::string_view what,
                             bool privates, bool combines) {
  for (NodeId id : program.BlocksUnder(loop)) {
    const ir::Block& block = program.BlockOf(id);
    if (combines && program.IsReductionLoop(loop, block)) {
      HONE_RETURN_IF_ERROR(CheckCombined(program, id, loop, what));
      continue;
    }
    if (program.IsReductionLoop(loop, block)) {
      return Illegal(program, loop,
                     absl::StrCat(what, ": block ", block.name, " reduces over the loop"));
    }
    if (WritesApart(program, block, loop) && AllWriteApart(program, block.outputs[0], loop))
      continue;
    for (ir::BufferId buffer : block.outputs) {
      if (!privates || !IsPrivate(program, buffer, loop)) {
        return Illegal(program, loop,
                       absl::StrCat(what, ": different iterations write the same elements of ",
                                    program.buffers[buffer].name));
      }
    }
    // A private accumulator does not outlive the iteration.
    for (NodeId above : program.LoopsAbove(loop)) {
      if (program.IsReductionLoop(above, block)) {
        return Illegal(program, loop,
                       absl::StrCat(what, ": block ", block.name, " reduces over a loop above"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status KeepConcurrencyLegal(ir::Program& program, absl::Span<const NodeId> nodes,
                                  absl::FunctionRef<void(ir::Program&)> change) {
  const auto is_parallel = [](const ir::Node& node) {
    return node.kind == ir::Node::Kind::kLoop &&
           (node.loop == ir::LoopKind::kParallel || node.loop == ir::LoopKind::kBound);
  };
  if (absl::c_none_of(program.nodes, is_parallel)) {
    change(program);
    return absl::OkStatus();
  }
  std::vector<NodeId> edited;
  for (const NodeId node : nodes) edited.push_back(program.NestOf(node));
  std::set<NodeId> kept;
  for (const NodeId kernel : program.kernels) {
    for (const NodeId nest : program.node(kernel).children) {
      if (!absl::c_linear_search(edited, nest)) kept.insert(nest);
    }
  }
  const auto is_checked = [&](const ir::Program& p, NodeId id) {
    return is_parallel(p.node(id)) && !kept.contains(p.NestOf(id));
  };
  const auto any_checked = [&] {
    for (NodeId id = 0; id < static_cast<NodeId>(program.nodes.size()); ++id) {
      if (is_checked(program, id)) return true;
    }
    return false;
  };
  if (!any_checked()) {
    change(program);
    return absl::OkStatus();
  }
  ir::Program changed = program;
  change(changed);
  for (NodeId id = 0; id < static_cast<NodeId>(changed.nodes.size()); ++id) {
    if (!is_checked(changed, id)) continue;
    HONE_RETURN_IF_ERROR(CheckConcurrent(changed, id, "a parallel loop would no longer be one",
                                         /*privates=*/true, IsThreadAxis(changed.nodes[id].axis)));
  }
  program = std::move(changed);
  return absl::OkStatus();
}

absl::Status CheckPartialReduction(ir::Program& program, NodeId block, NodeId loop,
                                   absl::string_view what) {
  const ir::Block& content = program.BlockOf(block);
  const auto illegal = [&](NodeId at, absl::string_view why) {
    return Illegal(program, at, absl::StrCat(what, ": ", why));
  };
  if (content.reducer == ir::Reducer::kNone) return illegal(block, "the block does not reduce");
  if (InTensorNest(program, block)) return illegal(block, "the block is in a tensor nest");
  if (!content.has_init) return illegal(block, "the block has no init");
  const ir::DType dtype = program.buffers[content.outputs[0]].dtype;
  if (ir::AccumulatorOf(content.reducer, dtype) != dtype) {
    return illegal(block, absl::StrCat("partial results would be rounded to ", ir::DTypeName(dtype),
                                       "; after cache_write they are f32"));
  }
  if (program.WritersOf(content.outputs[0]).size() != 1)
    return illegal(block, "another block writes the same buffer");
  if (!program.IsUnder(block, loop)) return illegal(loop, "the loop is not above the block");
  if (!program.IsReductionLoop(loop, content))
    return illegal(loop, "the block does not reduce over the loop");
  const ir::ReducingLoops loops = ir::ReducingLoopsOf(program, content, block);
  if (loops.mixed != ir::kNoNode)
    return illegal(loops.mixed, "the loop carries spatial and reduction iterations");
  if (ir::HasMixedPredicate(program, content, loops.reducing))
    return illegal(block, "a predicate of the block mixes spatial and reduction loops");
  for (NodeId other : program.BlocksUnder(loops.reducing[0])) {
    if (other == block) continue;
    for (ir::BufferId output : content.outputs) {
      const auto& outputs = program.BlockOf(other).outputs;
      if (program.Reads(program.BlockOf(other), output) || absl::c_linear_search(outputs, output)) {
        return illegal(other, "another block under the reduction uses its result");
      }
    }
  }
  if (!OneToOneUnder(program, block, loops.reducing[0])) {
    return illegal(loops.reducing[0], "iterations of the loop may compute the same elements");
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule
