#include <algorithm>
#include <bit>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/region.h"
#include "worker/compile/lower/gpu/gpu_passes.h"
#include "worker/compile/lower/gpu/thread_nest.h"

namespace hone::lower {

using ir::AtomId;
using ir::BufferId;
using ir::Index;
using ir::NodeId;

namespace {

// Builds the phases in which the threads of a loop combine their partial results, by shuffles or as
// a tree. They replace the nest that combines them in sequence.
class TreeBuilder {
 public:
  TreeBuilder(ir::Program& program, const ir::PartialReduction& divided, int shuffle_width)
      : p_(program),
        content_(program.BlockOf(divided.combine)),
        own_(program.BlockOf(divided.partial).outputs),
        at_(program.node(divided.loops[0]).parent),
        position_(program.PositionInParent(divided.loops[0])),
        lanes_(divided.loops.back()) {
    // The loops over threads go outside.
    for (const bool threads : {true, false}) {
      for (const NodeId loop : divided.loops) {
        if (IsBoundTo(program, loop, ir::IsThreadAxis) == threads) loops_.push_back(loop);
      }
    }
    if (CanShuffle(shuffle_width)) shuffle_width_ = shuffle_width;
    p_.Detach(divided.loops[0]);
    p_.Remove(divided.combine);
  }

  void Run() {
    const int64_t lanes = p_.node(lanes_).extent.value;
    if (shuffle_width_ == 1) {
      if (lanes == 1) return AddNest({[&] { return Result(own_); }});
      Publish(1);
      return AddTree(lanes);
    }
    const int64_t group = std::min(lanes, shuffle_width_), groups = lanes / group;
    AddExchanges(group);
    if (groups == 1) return AddNest({[&] { return Result(own_); }});
    Publish(group);
    if (groups > shuffle_width_ || !std::has_single_bit(static_cast<uint64_t>(groups))) {
      return AddTree(groups);
    }
    // All sub-groups combine the values of the sub-groups, because none may leave out a shuffle.
    AddNest({[&] { return Collect(groups); }});
    AddExchanges(groups);
    AddNest({[&] { return Result(own_); }});
  }

 private:
  // Whether all threads of a sub-group run the nest, and lie in it along the loop `lanes_`.
  bool CanShuffle(int64_t width) const {
    const int64_t lanes = p_.node(lanes_).extent.value;
    if (width == 1 || lanes == 1) return false;
    if (p_.node(lanes_).axis != ir::ThreadAxis::kThreadX) return false;
    if (lanes % width != 0 && width % lanes != 0) return false;
    std::vector<NodeId> threads;
    for (NodeId at = at_; p_.IsLoop(at); at = p_.node(at).parent) {
      if (IsBoundTo(p_, at, ir::IsThreadAxis)) threads.push_back(at);
    }
    for (const NodeId loop : loops_) {
      if (IsBoundTo(p_, loop, ir::IsThreadAxis)) threads.push_back(loop);
    }
    return HasOnlyAxesOf(threads, p_.KernelOf(at_)) &&
           std::ranges::none_of(content_.predicates, [&](const ir::Condition& predicate) {
             return ir::DependsOnLoops(p_, predicate.index, threads);
           });
  }

  // Whether the loops over threads under a node run on the axes of these loops.
  bool HasOnlyAxesOf(const std::vector<NodeId>& threads, NodeId id) const {
    const bool same = std::ranges::any_of(
        threads, [&](NodeId thread) { return p_.node(thread).axis == p_.node(id).axis; });
    if (IsBoundTo(p_, id, ir::IsThreadAxis) && p_.node(id).extent.value > 1 && !same) return false;
    return std::ranges::all_of(p_.node(id).children,
                               [&](NodeId child) { return HasOnlyAxesOf(threads, child); });
  }

  // Combines the values in shared memory of the first `left` threads.
  void AddTree(int64_t left) {
    for (int64_t half = Half(left); left > 2; left = half, half = Half(left)) {
      AddNest({[&] { return Add(half, left); }});
    }
    const auto result = [&] { return Result(shared_); };
    if (left == 2) {
      AddNest({[&] { return Add(1, 2); }, result});
    } else {
      AddNest({result});
    }
  }

  // Gives each thread the combined value of its group of consecutive threads.
  void AddExchanges(int64_t group) {
    if (others_.empty()) {
      for (const BufferId own : own_) {
        others_.push_back(AddBuffer(own, "_other", p_.node(lanes_).extent.value));
      }
    }
    for (int64_t distance = group / 2; distance > 0; distance /= 2) {
      AddNest({[&] { return CopyOther(distance); }, [&] { return AddOther(); }});
    }
  }

  // Makes the value of the first thread of each group visible to the block.
  void Publish(int64_t group) {
    const int64_t groups = p_.node(lanes_).extent.value / group;
    for (const BufferId own : own_) shared_.push_back(AddBuffer(own, "_threads", groups));
    AddNest({[&] { return CopyToShared(group); }});
  }

  // The largest power of two below the number of partial results.
  static int64_t Half(int64_t left) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(left)) / 2);
  }

  // Adds a buffer like `own` with this number of values for each element of the result.
  BufferId AddBuffer(BufferId own, absl::string_view suffix, int64_t values) {
    ir::Buffer buffer = p_.buffers[own];
    buffer.name = p_.FreshBufferName(absl::StrCat(p_.buffers[own].name, suffix));
    buffer.shape.back() = values;
    p_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(p_.buffers.size()) - 1;
  }

  // Adds a phase that consists of these blocks.
  void AddNest(std::initializer_list<absl::FunctionRef<ir::Block()>> blocks) {
    NodeId at = at_;
    size_t position = position_++;
    copies_.clear();
    for (const NodeId loop : loops_) {
      const NodeId copy = p_.NewLoop(p_.atoms[p_.node(loop).var].name, p_.node(loop).extent);
      p_.node(copy).loop = p_.node(loop).loop;
      p_.node(copy).axis = p_.node(loop).axis;
      p_.Insert(at, position, copy);
      copies_.emplace_back(p_.node(loop).var, Index::Of(p_.node(copy).var));
      if (loop == lanes_) lane_ = p_.node(copy).var;
      at = copy;
      position = 0;
    }
    for (const auto& make : blocks) p_.Append(at, p_.NewBlock(make()));
  }

  using Replacements = std::vector<std::pair<AtomId, Index>>;

  // A block over the spatial iterations, with the indices of the result.
  ir::Block Spatial(absl::string_view suffix) {
    ir::Block block{.name = p_.FreshBlockName(absl::StrCat(content_.name, suffix)),
                    .exact = content_.exact};
    Replacements vars;
    for (const ir::BlockIter& iter : content_.iters) {
      if (iter.reduce) continue;
      const AtomId var = p_.atoms.AddVar(p_.atoms[iter.var].name, iter.extent);
      vars.emplace_back(iter.var, Index::Of(var));
      block.iters.push_back({var, iter.extent, false, p_.atoms.Substitute(iter.binding, copies_)});
    }
    for (const Index& index : content_.indices)
      block.indices.push_back(p_.atoms.Substitute(index, vars));
    for (const ir::Condition& predicate : content_.predicates)
      block.predicates.push_back({p_.atoms.Substitute(predicate.index, copies_), predicate.extent});
    return block;
  }

  // Like Spatial, but for each of the first `count` threads, whose number is the last index.
  ir::Block OverLanes(absl::string_view suffix, int64_t count) {
    ir::Block block = Spatial(suffix);
    const AtomId var = p_.atoms.AddVar("lane", count);
    block.iters.push_back({var, count, false, Index::Of(lane_)});
    block.indices.push_back(Index::Of(var));
    if (count < p_.node(lanes_).extent.value) {
      block.predicates.push_back({Index::Of(lane_), count});
    }
    return block;
  }

  void LoadFrom(const std::vector<BufferId>& buffers, const ir::IndexList& indices,
                ir::Block& block) {
    for (const BufferId buffer : buffers)
      block.values.push_back(p_.pool.Load(buffer, p_.buffers[buffer].dtype, indices));
  }

  // shared[lane / group] = own[lane], by the first thread of each group
  ir::Block CopyToShared(int64_t group) {
    ir::Block block = OverLanes("_publish", p_.node(lanes_).extent.value);
    block.outputs = shared_;
    LoadFrom(own_, block.indices, block);
    if (group == 1) return block;
    block.indices.back() = p_.atoms.FloorDiv(block.indices.back(), group);
    block.predicates.push_back({p_.atoms.Mod(Index::Of(lane_), group), 1});
    return block;
  }

  // own[lane] = shared[lane % groups]
  ir::Block Collect(int64_t groups) {
    ir::Block block = OverLanes("_collect", p_.node(lanes_).extent.value);
    block.outputs = own_;
    ir::IndexList from = block.indices;
    from.back() = p_.atoms.Mod(from.back(), groups);
    LoadFrom(shared_, from, block);
    return block;
  }

  // other[lane] = own[lane ^ distance]
  ir::Block CopyOther(int64_t distance) {
    ir::Block block = OverLanes("_shuffle", p_.node(lanes_).extent.value);
    block.outputs = others_;
    block.lane_xor = static_cast<int>(distance);
    LoadFrom(own_, block.indices, block);
    return block;
  }

  // own[lane] = reducer(own[lane], other[lane])
  ir::Block AddOther() {
    ir::Block block = OverLanes("_add", p_.node(lanes_).extent.value);
    block.reducer = content_.reducer;
    block.outputs = own_;
    LoadFrom(others_, block.indices, block);
    return block;
  }

  // shared[lane] = reducer(shared[lane], shared[lane + half]) where lane + half < left
  ir::Block Add(int64_t half, int64_t left) {
    ir::Block block = OverLanes("_add", left - half);
    block.reducer = content_.reducer;
    block.outputs = shared_;
    ir::IndexList other = block.indices;
    other.back() += half;
    LoadFrom(shared_, other, block);
    return block;
  }

  // result = sums[0], by the first thread
  ir::Block Result(const std::vector<BufferId>& sums) {
    ir::Block block = OverLanes("", p_.node(lanes_).extent.value);
    block.outputs = content_.outputs;
    ir::IndexList first = block.indices;
    if (sums == shared_) first.back() = Index(0);
    LoadFrom(sums, first, block);
    block.indices.pop_back();
    block.predicates.push_back({Index::Of(lane_), 1});
    return block;
  }

  ir::Program& p_;
  const ir::Block content_;  // the block that combines in sequence
  // The partial results of the threads, those that threads share, and those of other threads.
  std::vector<BufferId> own_, shared_, others_;
  int64_t shuffle_width_ = 1;
  NodeId at_;
  size_t position_;
  NodeId lanes_;
  std::vector<NodeId> loops_;
  Replacements copies_;        // of the loops of the current nest
  AtomId lane_ = ir::kNoAtom;  // in the current nest
};

// The loop over threads that a block reduces over, or kNoNode.
NodeId ThreadsOf(const ir::Program& program, NodeId block) {
  for (const NodeId loop : program.LoopsAbove(block)) {
    if (!IsBoundTo(program, loop, ir::IsThreadAxis)) continue;
    if (program.IsReductionLoop(loop, program.BlockOf(block))) return loop;
  }
  return ir::kNoNode;
}

absl::Status ReduceBlock(ir::Program& program, NodeId id, NodeId threads, int shuffle_width) {
  const ir::Block& block = program.BlockOf(id);
  const ir::ReducingLoops loops = ir::ReducingLoopsOf(program, block, id);
  const auto refuse = [&](NodeId at, absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("threads cannot combine the partial results of ",
                                                   block.name, ": ", why, "\n",
                                                   program.ToText(at)));
  };
  if (loops.mixed != ir::kNoNode)
    return refuse(loops.mixed, "a loop carries spatial and reduction iterations");
  if (ir::HasMixedPredicate(program, block, loops.reducing))
    return refuse(id, "a predicate mixes spatial and reduction loops");
  if (!block.has_init || program.WritersOf(block.outputs[0]).size() != 1)
    return refuse(id, "another block writes the same buffer");
  const size_t rank = block.indices.size();
  const ir::PartialReduction divided = ir::DivideReduction(program, id, threads, rank);
  // The new loops over threads run on the same axes.
  for (size_t i = 0; i < divided.loops.size(); ++i) {
    const NodeId from = i < loops.inner.size() ? loops.inner[i] : threads;
    if (!IsBoundTo(program, from, ir::IsThreadAxis)) continue;
    program.node(divided.loops[i]).loop = ir::LoopKind::kBound;
    program.node(divided.loops[i]).axis = program.node(from).axis;
  }
  TreeBuilder(program, divided, shuffle_width).Run();
  return absl::OkStatus();
}

}  // namespace

absl::Status ReduceThreads(ir::Program& program, int shuffle_width) {
  for (const NodeId id : program.AllBlocks()) {
    const NodeId threads = ThreadsOf(program, id);
    if (threads == ir::kNoNode) continue;
    HONE_RETURN_IF_ERROR(ReduceBlock(program, id, threads, shuffle_width));
  }
  return absl::OkStatus();
}

}  // namespace hone::lower
