#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/primitive/one_to_one.h"
#include "common/schedule/replay.h"

namespace hone::schedule {
namespace {

using ir::Extent;
using ir::ExtentTable;
using ir::NodeId;

// Checks that the block may reduce in the new order of its nest's loops.
absl::Status CheckReduction(ir::Program& program, NodeId block, const std::vector<NodeId>& chain,
                            const std::vector<NodeId>& order) {
  const ir::Block& content = program.BlockOf(block);
  const auto reduces = [&](NodeId loop) { return program.IsReductionLoop(loop, content); };
  const auto reducing = absl::c_find_if(chain, reduces);
  if (reducing == chain.end()) return absl::OkStatus();
  // No other block in the nest may read or write the output: it would see or overwrite unfinished
  // sums.
  for (NodeId other : program.BlocksUnder(chain.back())) {
    if (other == block) continue;
    for (ir::BufferId output : content.outputs) {
      const auto& outputs = program.BlockOf(other).outputs;
      if (program.Reads(program.BlockOf(other), output) || absl::c_linear_search(outputs, output)) {
        return Illegal(
            program, *reducing,
            "reorder: a block reduces over this loop, and another block in the nest reads or "
            "writes its output");
      }
    }
  }
  if (!OneToOneUnder(program, block, chain.front())) {
    return Illegal(
        program, chain.front(),
        "reorder: a block in the nest is a reduction, and the loops may run one of its iterations "
        "more than once");
  }
  if (!content.has_init) return absl::OkStatus();
  // The block stores the neutral element when all its reduction variables are 0, which must remain
  // the first visit of the element. Loops that carry both spatial and reduction iterations (mixed
  // ones) determine which visit is the first.
  const auto is_mixed = [&](NodeId loop) {
    return reduces(loop) && program.IsSpatialLoop(loop, content);
  };
  if (absl::c_none_of(chain, is_mixed)) return absl::OkStatus();
  const auto mixed_of = [&](const std::vector<NodeId>& loops) {
    std::vector<NodeId> mixed;
    std::copy_if(loops.begin(), loops.end(), std::back_inserter(mixed), is_mixed);
    // So do the loops that occur in the same binding as a mixed loop.
    std::vector<NodeId> tied;
    for (NodeId loop : loops) {
      const bool with = absl::c_any_of(content.iters, [&](const ir::BlockIter& iter) {
        return program.atoms.DependsOn(iter.binding, program.node(loop).var) &&
               absl::c_any_of(mixed, [&](NodeId m) {
                 return program.atoms.DependsOn(iter.binding, program.node(m).var);
               });
      });
      if (with) tied.push_back(loop);
    }
    return tied;
  };
  const std::vector<NodeId> mixed = mixed_of(chain);
  if (mixed != mixed_of(order)) {
    return Illegal(program, mixed[0],
                   "reorder: the loop carries spatial and reduction iterations of a block that "
                   "stores its neutral element first");
  }
  return absl::OkStatus();
}

// Splits a loop into one loop per bit of its variable, highest first; none for an extent of 1.
absl::StatusOr<std::vector<NodeId>> Bits(ir::Program& program, NodeId loop) {
  const auto extent = static_cast<uint64_t>(program.node(loop).extent.value);
  if (!std::has_single_bit(extent))
    return Illegal(program, loop, "reorder_space: morton needs an extent that is a power of two");
  const int count = std::countr_zero(extent);
  if (count < 2) return std::vector<NodeId>{loop};
  return Split(program, loop, std::vector<Extent>(count, ExtentTable::Constant(2)));
}

}  // namespace

absl::Status Reorder(ir::Program& program, absl::Span<const NodeId> loops) {
  if (loops.size() < 2) return absl::InvalidArgumentError("reorder: needs at least two loops");
  const auto named = [&](NodeId id) { return absl::c_linear_search(loops, id); };
  for (size_t i = 0; i < loops.size(); ++i) {
    if (absl::c_count(loops, loops[i]) != 1)
      return Illegal(program, loops[i], "reorder: the loop is named twice");
    const ir::LoopKind kind = program.node(loops[i]).loop;
    if (kind == ir::LoopKind::kParallel || kind == ir::LoopKind::kVectorized) {
      return Illegal(program, loops[i], "reorder: the loop is parallel or vectorized already");
    }
    if (kind == ir::LoopKind::kBound)
      return Illegal(program, loops[i], "reorder: the loop is bound to a GPU axis");
    if (kind == ir::LoopKind::kTensor)
      return Illegal(program, loops[i], "reorder: the loop is in a tensor nest");
  }
  // Find the chain from the outermost of the given loops down to the innermost.
  NodeId top = loops[0], bottom = loops[0];
  for (NodeId loop : loops) {
    if (program.IsUnder(top, loop)) top = loop;
    if (program.IsUnder(loop, bottom)) bottom = loop;
  }
  std::vector<NodeId> chain;
  chain.reserve(16);
  for (NodeId at = bottom;; at = program.node(at).parent) {
    if (at == ir::kNoNode || program.node(at).kind != ir::Node::Kind::kLoop) {
      return Illegal(program, bottom, "reorder: the loops are not on one path");
    }
    if (at != bottom && program.node(at).children.size() != 1) {
      return Illegal(program, at, "reorder: the loop contains more than the nest");
    }
    chain.push_back(at);
    if (at == top) break;
  }
  absl::c_reverse(chain);
  for (NodeId loop : loops) {
    if (!absl::c_linear_search(chain, loop))
      return Illegal(program, loop, "reorder: the loops are not on one path");
  }
  std::vector<NodeId> order;
  order.reserve(chain.size());
  size_t next = 0;
  for (NodeId loop : chain) order.push_back(named(loop) ? loops[next++] : loop);
  for (NodeId block : program.BlocksUnder(bottom))
    HONE_RETURN_IF_ERROR(CheckReduction(program, block, chain, order));
  return KeepConcurrencyLegal(program, {top}, [&](ir::Program& p) {
    const NodeId parent = p.node(top).parent;
    const size_t position = p.PositionInParent(top);
    const auto content = p.node(bottom).children;
    for (size_t i = 0; i < order.size(); ++i) {
      ir::Node& node = p.node(order[i]);
      node.parent = i == 0 ? parent : order[i - 1];
      node.children.clear();
      if (i + 1 < order.size()) node.children.push_back(order[i + 1]);
    }
    p.node(order.back()).children = content;
    for (NodeId child : content) p.node(child).parent = order.back();
    p.node(parent).children[position] = order[0];
  });
}

absl::Status ReorderBy(ir::Program& program, absl::Span<const NodeId> loops,
                       absl::string_view orders, int64_t choice) {
  const std::vector<absl::string_view> all = absl::StrSplit(orders, '|');
  if (choice < 0 || choice >= static_cast<int64_t>(all.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("reorder_by: there is no order number ", choice, " in \"", orders, "\""));
  }
  std::vector<NodeId> order;
  std::vector<bool> used(loops.size(), false);
  for (absl::string_view word :
       absl::StrSplit(all[static_cast<size_t>(choice)], ' ', absl::SkipEmpty())) {
    size_t place = 0;
    if (!absl::SimpleAtoi(word, &place) || place >= loops.size() || used[place]) {
      return absl::InvalidArgumentError(
          absl::StrCat("reorder_by: \"", all[static_cast<size_t>(choice)], "\" is no order of ",
                       loops.size(), " loops, counted from 0"));
    }
    used[place] = true;
    order.push_back(loops[place]);
  }
  if (order.size() != loops.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("reorder_by: \"", all[static_cast<size_t>(choice)], "\" orders ", order.size(),
                     " loops, not the ", loops.size(), " that are given"));
  }
  return Reorder(program, order);
}

absl::Status ApplyReorderBy(Call& call) {
  HONE_ASSIGN_OR_RETURN(const ir::Extent choice, call.Int(0));
  HONE_ASSIGN_OR_RETURN(const std::string orders, call.Text(1));
  std::vector<NodeId> loops;
  for (int i = 2; i < call.operands(); ++i) {
    HONE_ASSIGN_OR_RETURN(loops.emplace_back(), call.Loop(i));
  }
  return ReorderBy(call.program(), loops, orders, choice.value);
}

absl::StatusOr<NodeId> ReorderSpace(ir::Program& original, NodeId outer, NodeId inner,
                                    absl::string_view order, Extent group) {
  if (order != "grouped" && order != "morton") {
    return absl::InvalidArgumentError(absl::StrCat(
        "reorder_space: unknown order '", order.substr(0, 64), "'; known: grouped, morton"));
  }
  if (original.node(inner).parent != outer || original.node(outer).children.size() != 1) {
    return Illegal(original, inner,
                   "reorder_space: the second loop is not the only content of the first");
  }
  ir::Program program = original;
  std::vector<NodeId> loops;
  if (order == "grouped") {
    const Extent extent = program.node(outer).extent;
    if (group.value < 1)
      return Illegal(original, outer,
                     absl::StrCat("reorder_space: bands of ", group.value, " iterations"));
    if (group.value > extent.value) group = extent;
    HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> bands,
                          Split(program, outer, {ExtentTable::Constant(0), group}));
    loops = {bands[0], inner, bands[1]};
  } else {
    HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> high, Bits(program, outer));
    HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> low, Bits(program, inner));
    // The lowest bits alternate; the extra bits of the longer one come first.
    for (size_t bit = std::max(high.size(), low.size()); bit-- > 0;) {
      if (bit < high.size()) loops.push_back(high[high.size() - 1 - bit]);
      if (bit < low.size()) loops.push_back(low[low.size() - 1 - bit]);
    }
  }
  HONE_RETURN_IF_ERROR(Reorder(program, loops));
  HONE_ASSIGN_OR_RETURN(const NodeId fused, Fuse(program, loops));
  original = std::move(program);
  return fused;
}

}  // namespace hone::schedule
