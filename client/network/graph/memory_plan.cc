#include "client/network/graph/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "client/network/graph/partition/views.h"

namespace hone::graph {
namespace {

// Memory in the arena for the values of one owner.
struct Block {
  ValueId owner = kNoValue;
  int64_t bytes = 0;                                       // a multiple of the alignment
  int first = std::numeric_limits<int>::max(), last = -1;  // the steps that use it
  int64_t offset = 0;

  bool LivesWith(const Block& other) const { return first <= other.last && other.first <= last; }
};

// The views that a partition's aliases make, in the order in which the partition found the aliases.
Views ViewsOf(const Graph& graph, const Partition& partition) {
  std::set<int> aliases;
  for (const Step& step : partition.steps) {
    if (step.kind == Step::Kind::kAlias) aliases.insert(step.nodes[0]);
  }
  Views views(graph);
  for (const int n : aliases) TakeAlias(graph, graph.nodes[n], partition.alignment, views);
  return views;
}

// One block for each owner in the arena, with the first and the last step that use it.
std::vector<Block> FindBlocks(const Graph& graph, const Partition& partition, const Views& views) {
  std::map<ValueId, Block> blocks;
  for (int s = 0; static_cast<size_t>(s) < partition.steps.size(); ++s) {
    const Step& step = partition.steps[s];
    for (const std::vector<ValueId>* values : {&step.inputs, &step.outputs}) {
      for (const ValueId id : *values) {
        const ValueId owner = views.Of(id).owner;
        if (views.OutsideOf(owner) != kNoValue) continue;
        Block& block = blocks[owner];
        block.owner = owner;
        block.first = std::min(block.first, s);
        block.last = std::max(block.last, s);
      }
    }
  }
  std::vector<Block> list;
  for (auto& [owner, block] : blocks) {
    const int64_t alignment = partition.alignment;
    block.bytes = (graph.value(owner).type.bytes() + alignment - 1) / alignment * alignment;
    list.push_back(block);
  }
  return list;
}

// Returns the offset of the smallest gap that holds a block for its lifetime, or the end of the
// placed blocks if there is none. `placed` is sorted by offset.
int64_t BestFit(const std::vector<Block>& placed, const Block& block) {
  int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Block& other : placed) {
    if (!block.LivesWith(other)) continue;
    const int64_t gap = other.offset - end;
    if (gap >= block.bytes && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, other.offset + other.bytes);
  }
  return best < 0 ? end : best;
}

}  // namespace

MemoryPlan PlanMemory(const Graph& graph, const Partition& partition) {
  const Views views = ViewsOf(graph, partition);
  std::vector<Block> blocks = FindBlocks(graph, partition, views);
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
  MemoryPlan plan;
  std::vector<Block> placed;
  std::map<ValueId, int64_t> offsets;
  for (Block& block : blocks) {
    block.offset = BestFit(placed, block);
    offsets[block.owner] = block.offset;
    plan.arena_bytes = std::max(plan.arena_bytes, block.offset + block.bytes);
    const auto after = [](int64_t offset, const Block& other) { return offset < other.offset; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), block.offset, after), block);
  }
  std::set<ValueId> used(graph.inputs.begin(), graph.inputs.end());
  used.insert(graph.outputs.begin(), graph.outputs.end());
  for (const Step& step : partition.steps) {
    used.insert(step.inputs.begin(), step.inputs.end());
    used.insert(step.outputs.begin(), step.outputs.end());
  }
  plan.places.resize(graph.values.size());
  for (const ValueId id : used) {
    const Views::View view = views.Of(id);
    const ValueId outside = views.OutsideOf(view.owner);
    plan.places[id] = outside != kNoValue
                          ? Place{Place::Kind::kOutside, outside, view.offset}
                          : Place{Place::Kind::kArena, kNoValue, offsets[view.owner] + view.offset};
  }
  return plan;
}

}  // namespace hone::graph
