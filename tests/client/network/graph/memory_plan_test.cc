#include "client/network/graph/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/client/network/graph/random_graph.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ir::DType;

// Runs the steps of a partition on memory where each byte holds the tensor, and the byte of it,
// that was written last.
class Memory {
 public:
  Memory(const Graph& graph, const Partition& partition, const MemoryPlan& plan)
      : graph_(graph), partition_(partition), plan_(plan) {}

  // "" if every step reads what it needs and writes nothing that it reads.
  std::string Run() {
    for (const ValueId id : graph_.inputs) Write(id);
    for (size_t s = 0; s < partition_.steps.size(); ++s) {
      const Step& step = partition_.steps[s];
      for (const ValueId id : step.inputs) {
        if (!graph_.IsConstant(id) && !Holds(id)) return absl::StrCat("step ", s, " reads ", id);
      }
      for (const ValueId id : step.outputs) {
        if (!Fits(id)) return absl::StrCat(id, " is not where a tensor can be");
        step.kind == Step::Kind::kAlias ? View(step) : Write(id);
      }
      for (const ValueId id : step.inputs) {
        const bool stays = step.kind == Step::Kind::kAlias || graph_.IsConstant(id) || Holds(id);
        if (!stays) return absl::StrCat("step ", s, " overwrites its input ", id);
      }
    }
    for (const ValueId id : graph_.outputs) {
      const Place& place = plan_.places[id];
      if (place.kind != Place::Kind::kOutside || place.outside != id) return "an output is inside";
      if (!Holds(id)) return absl::StrCat("output ", id, " is overwritten");
    }
    return "";
  }

 private:
  using Address = std::pair<ValueId, int64_t>;  // the memory and the byte in it

  Address AddressOf(ValueId id, int64_t byte) const {
    const Place& place = plan_.places[id];
    return {place.outside, place.offset + byte};
  }
  // Whether a tensor is aligned and within its memory.
  bool Fits(ValueId id) const {
    const Place& place = plan_.places[id];
    const int64_t end = place.offset + graph_.value(id).type.bytes();
    const bool is_inside = place.kind == Place::Kind::kArena;
    return place.offset % partition_.alignment == 0 &&
           end <= (is_inside ? plan_.arena_bytes : graph_.value(place.outside).type.bytes());
  }
  // Marks the bytes of a tensor as its own.
  void Write(ValueId id) {
    for (int64_t b = 0; b < graph_.value(id).type.bytes(); b += 4) bytes_[AddressOf(id, b)] = {id};
  }
  // The memory of an alias holds its outputs, too, if it holds its inputs.
  void View(const Step& step) {
    std::set<Address> inputs;
    for (const ValueId id : step.inputs) {
      for (int64_t b = 0; b < graph_.value(id).type.bytes(); b += 4) {
        if (graph_.IsConstant(id)) bytes_[AddressOf(id, b)].insert(id);
        inputs.insert(AddressOf(id, b));
      }
    }
    for (const ValueId id : step.outputs) {
      for (int64_t b = 0; b < graph_.value(id).type.bytes(); b += 4) {
        if (inputs.contains(AddressOf(id, b))) bytes_[AddressOf(id, b)].insert(id);
      }
    }
  }
  bool Holds(ValueId id) {
    for (int64_t b = 0; b < graph_.value(id).type.bytes(); b += 4) {
      if (!bytes_[AddressOf(id, b)].contains(id)) return false;
    }
    return true;
  }

  const Graph& graph_;
  const Partition& partition_;
  const MemoryPlan& plan_;
  std::map<Address, std::set<ValueId>> bytes_;
};

int64_t Rounded(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// The sum of all tensors in the arena, in bytes.
int64_t Sum(const Graph& graph, const MemoryPlan& plan, int64_t alignment) {
  int64_t sum = 0;
  for (size_t id = 0; id < plan.places.size(); ++id) {
    if (plan.places[id].kind != Place::Kind::kArena) continue;
    sum += Rounded(graph.values[id].type.bytes(), alignment);
  }
  return sum;
}

TEST(MemoryPlanTest, RandomGraphsKeepWhatTheyNeed) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomGraph random(seed, DType::kF32);
    const Graph graph = random.Draw(2 + static_cast<int>(seed % 20));
    if (graph.nodes.empty()) continue;
    const int64_t alignment = seed % 3 == 0 ? 512 : kAlignment;
    HONE_ASSERT_OK_AND_ASSIGN(const auto partition, MakePartition(graph, {.fuse = seed % 2 == 0,
                                                                          .alignment = alignment}));
    const MemoryPlan plan = PlanMemory(graph, partition);
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\n", graph.ToText()));
    EXPECT_EQ(Memory(graph, partition, plan).Run(), "");
    EXPECT_LE(plan.arena_bytes, Sum(graph, plan, alignment));
  }
}

class MemoryOfGraphTest : public testing::Test {
 protected:
  ValueId Apply(const std::string& op, std::vector<ValueId> inputs,
                std::map<std::string, Attribute> attributes = {}) {
    const std::string name = absl::StrCat("v", graph_.values.size());
    EXPECT_THAT(graph_.AddNode({name, op, std::move(inputs), {}, attributes}, {name}), IsOk());
    return graph_.nodes.back().outputs[0];
  }
  MemoryPlan Plan(bool fuse = true) {
    const auto partition = MakePartition(graph_, {.fuse = fuse});
    EXPECT_THAT(partition, IsOk());
    const MemoryPlan plan = PlanMemory(graph_, *partition);
    EXPECT_EQ(Memory(graph_, *partition, plan).Run(), "");
    return plan;
  }

  Graph graph_;
};

// A chain of residual blocks, as in a ResNet: the input of the block, what it computes, and the
// next result.
TEST_F(MemoryOfGraphTest, ResidualBlocksNeedThreeTensors) {
  graph_.inputs = {graph_.AddValue("x", {DType::kF32, {16, 16}})};
  ValueId x = 0;
  for (int i = 0; i < 10; ++i) {
    const ValueId y = Apply("Relu", {Apply("MatMul", {x, x})});
    x = Apply("Relu", {Apply("Add", {Apply("MatMul", {y, y}), x})});
  }
  graph_.outputs = {x};
  EXPECT_EQ(Plan().arena_bytes, 3 * 16 * 16 * 4);
}

TEST_F(MemoryOfGraphTest, TensorsWithinAKernelNeedNone) {
  graph_.inputs = {graph_.AddValue("x", {DType::kF32, {16, 16}})};
  const ValueId y = Apply("Abs", {0});
  graph_.outputs = {Apply("Relu", {y})};
  const MemoryPlan plan = Plan();
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_EQ(plan.places[y].kind, Place::Kind::kNowhere);
}

}  // namespace
}  // namespace hone::graph
