// Plans as C++ writes them and the runtime reads them.

#include "client/network/plan/plan.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "client/network/plan/gpu_plan.h"
#include "client/network/plan/make_plan.h"
#include "client/network/runtime/plan_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/test_network.h"

namespace hone::network {
namespace {

using ::testing::ElementsAre;
using ::testing::StrEq;

// The bytes of a plan in memory that is aligned as the runtime requires.
class Bytes {
 public:
  explicit Bytes(const std::string& bytes) : words_(bytes.size() / 8 + 1), size_(bytes.size()) {
    std::memcpy(words_.data(), bytes.data(), size_);
  }
  const char* Read(HonePlan* plan) const { return hone_plan_read(words_.data(), size_, plan); }

 private:
  std::vector<uint64_t> words_;
  size_t size_;
};

Plan SmallPlan() {
  Plan plan;
  const graph::TensorType type{ir::DType::kF32, {2, 3}};
  plan.tensors = {
      {.name = "x", .type = type, .place = PlaceKind::kInput},
      {.name = "w", .type = type, .place = PlaceKind::kWeights, .offset = 64},
      {.name = "y", .type = type, .place = PlaceKind::kOutput},
      {.name = "t", .type = type, .place = PlaceKind::kArena, .offset = 128},
      {.name = "i", .type = {ir::DType::kI32, {6}}, .place = PlaceKind::kArena, .offset = 64}};
  plan.kernels = {{.name = "add", .buffers = 3, .packed_bytes = 24}};
  plan.steps = {{.name = "n",
                 .kernel = 0,
                 .tensors = {0, 1, 3},
                 .packed_offset = 128,
                 .checks = {{.tensor = 4, .extent = 5}, {.tensor = 4, .extent = 2, .columns = 3}}},
                {.name = "y", .tensors = {3, 2}}};
  plan.inputs = {0};
  plan.outputs = {2};
  plan.arena_bytes = 192;
  plan.weights_bytes = 192;
  plan.weights = DigestOf("weights");
  return plan;
}

std::string WhatIsWrong(const Plan& plan) {
  HonePlan read;
  const char* const wrong = Bytes(plan.Encode()).Read(&read);
  return wrong == nullptr ? "nothing" : wrong;
}

TEST(PlanTest, TheRuntimeReadsWhatIsWritten) {
  const Bytes bytes(SmallPlan().Encode());
  HonePlan plan;
  ASSERT_EQ(bytes.Read(&plan), nullptr);
  EXPECT_EQ(plan.header->tensors, 5u);
  EXPECT_EQ(plan.header->arena_bytes, 192u);
  const Digest weights = SmallPlan().weights;
  EXPECT_EQ(std::memcmp(plan.header->id, &weights, sizeof weights), 0);
  EXPECT_THAT(plan.texts + plan.tensors[1].name, StrEq("w"));
  EXPECT_THAT(plan.texts + plan.tensors[1].dtype, StrEq("f32"));
  EXPECT_EQ(plan.tensors[1].offset, 64u);
  EXPECT_EQ(plan.tensors[1].bytes, 24u);
  EXPECT_THAT(std::vector<int64_t>(plan.tensors[1].shape, plan.tensors[1].shape + 2),
              ElementsAre(2, 3));
  EXPECT_EQ(plan.steps[1].kernel, HONE_PLAN_COPY);
  EXPECT_EQ(plan.buffers[plan.steps[1].first_buffer], 3u);
  ASSERT_EQ(plan.steps[0].checks, 2u);
  EXPECT_EQ(plan.checks[1].tensor, 4u);
  EXPECT_EQ(plan.checks[1].extent, 2);
  EXPECT_EQ(plan.checks[1].columns, 3u);
  EXPECT_EQ(plan.checks[1].element_bytes, 4u);
}

TEST(PlanTest, RefusesPlansThatWouldLeaveTheirMemory) {
  const auto change = [](auto&& edit) {
    Plan plan = SmallPlan();
    edit(plan);
    return WhatIsWrong(plan);
  };
  EXPECT_EQ(change([](Plan&) {}), "nothing");
  EXPECT_EQ(change([](Plan& p) { p.tensors[1].offset = 192; }), "has a tensor outside the weights");
  EXPECT_EQ(change([](Plan& p) { p.tensors[1].offset = 0; }), "has a tensor outside the weights");
  EXPECT_EQ(change([](Plan& p) { p.tensors[3].offset = 192; }), "has a tensor outside the arena");
  EXPECT_EQ(change([](Plan& p) { p.tensors[3].offset = 100; }), "has a tensor outside the arena");
  EXPECT_EQ(change([](Plan& p) { p.tensors[0].number = 1; }),
            "has a tensor in an input that does not exist");
  EXPECT_EQ(change([](Plan& p) { p.tensors[2].number = 1; }),
            "has a tensor in an output that does not exist");
  EXPECT_EQ(change([](Plan& p) {
              p.tensors[3].place = PlaceKind::kOutput;
              p.tensors[3].offset = 64;
            }),
            "has a tensor outside its input or output");
  EXPECT_EQ(change([](Plan& p) { p.steps[0].tensors.pop_back(); }),
            "has a step with another number of buffers than its kernel");
  EXPECT_EQ(change([](Plan& p) { p.steps[0].tensors[1] = 5; }),
            "has a step with an unknown tensor");
  EXPECT_EQ(change([](Plan& p) { p.steps[0].checks[0].column = 1; }),
            "has a check that is not possible");
  EXPECT_EQ(change([](Plan& p) { p.tensors[4].type.dtype = ir::DType::kI8; }),
            "has a check that is not possible");
  EXPECT_EQ(change([](Plan& p) { p.steps[0].kernel = 1; }), "has a step with an unknown kernel");
  EXPECT_EQ(change([](Plan& p) { p.steps[0].packed_offset = 256; }),
            "has packed constants outside the weights");
  EXPECT_EQ(change([](Plan& p) { p.steps[1].tensors = {3, 1}; }),
            "copies to a tensor that is constant");
  EXPECT_EQ(change([](Plan& p) { p.tensors[2].type.shape = {2, 4}; }),
            "has a copy that is not possible");
  EXPECT_EQ(change([](Plan& p) { p.outputs = {3}; }), "has an input or output in another place");
  EXPECT_EQ(change([](Plan& p) { p.inputs = {9}; }), "has an unknown input or output");
}

TEST(PlanTest, RefusesTruncatedPlans) {
  const std::string bytes = SmallPlan().Encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    HonePlan plan;
    EXPECT_NE(Bytes(bytes.substr(0, size)).Read(&plan), nullptr) << size;
  }
  HonePlan plan;
  EXPECT_NE(Bytes(bytes + "x").Read(&plan), nullptr);
}

// Whatever is accepted, stays inside its bytes (a sanitizer sees reads outside).
TEST(PlanTest, SurvivesDamage) {
  const std::string bytes = SmallPlan().Encode();
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    HonePlan plan;
    const Bytes copy(damaged);
    if (copy.Read(&plan) != nullptr) continue;
    for (uint32_t t = 0; t < plan.header->tensors; ++t) {
      EXPECT_LT(std::strlen(plan.texts + plan.tensors[t].name), damaged.size());
    }
  }
}

// The place of each tensor, by its name.
std::map<std::string, PlaceKind> PlacesOf(const Plan& plan) {
  std::map<std::string, PlaceKind> places;
  for (const PlanTensor& tensor : plan.tensors) places[tensor.name] = tensor.place;
  return places;
}

TEST(MakePlanTest, PacksConstantsOnceAndDropsTheirPlainForm) {
  const TestNetwork network = Compile(Residual(), {.fuse = false, .pack = true});
  auto planned = MakePlan(network.graph, network.partition, network.kernels);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(PlacesOf(planned->plan)["w1"], PlaceKind::kAbsent);
  EXPECT_EQ(PlacesOf(planned->plan)["x"], PlaceKind::kInput);
  EXPECT_EQ(PlacesOf(planned->plan)["t4"], PlaceKind::kOutput);
  EXPECT_EQ(PlacesOf(planned->plan)["t2"], PlaceKind::kArena);
  for (const WeightsPiece& piece : planned->pieces) {
    EXPECT_EQ(piece.constant, graph::kNoValue);
    EXPECT_EQ(piece.offset % 64, 0);
  }
  EXPECT_EQ(WhatIsWrong(planned->plan), "nothing");
}

TEST(MakePlanTest, KeepsThePlainFormOfConstantsThatSomethingReads) {
  graph::Graph graph = Residual();
  const graph::ValueId w1 = 1;
  graph.outputs.push_back(w1);
  const TestNetwork network = Compile(graph, {.fuse = false, .pack = true});
  auto planned = MakePlan(network.graph, network.partition, network.kernels);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->pieces.size(), 4u);  // three packed, and w1
  EXPECT_EQ(WhatIsWrong(planned->plan), "nothing");
}

TEST(MakePlanTest, EqualStepsShareTheirPackedConstants) {
  graph::Graph graph;
  const graph::ValueId x = graph.AddValue("x", {ir::DType::kF32, {8, 8}});
  graph.inputs = {x};
  const graph::ValueId w = AddWeights(graph, "w", {8, 8}), v = AddWeights(graph, "v", {8, 8});
  const graph::ValueId twice = AddNode(graph, "MatMul", {AddNode(graph, "MatMul", {x, w}), w});
  graph.outputs = {AddNode(graph, "MatMul", {twice, v})};
  const TestNetwork network = Compile(graph, {.fuse = false, .pack = true});
  ASSERT_EQ(network.kernels.size(), 1u);
  auto planned = MakePlan(network.graph, network.partition, network.kernels);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->pieces.size(), 2u);
  EXPECT_EQ(planned->plan.steps[0].packed_offset, planned->plan.steps[1].packed_offset);
  EXPECT_NE(planned->plan.steps[0].packed_offset, planned->plan.steps[2].packed_offset);
}

// A network with OpenCL kernels, and its plan.
struct PlannedForGpu {
  TestNetwork network;
  GpuPlan plan;
};
PlannedForGpu PlanForGpu(bool pack) {
  PlannedForGpu made{
      .network = Compile(
          Residual(), {.fuse = false, .pack = pack, .target = codegen::Preset("generic/opencl")})};
  const auto planned = MakePlan(made.network.graph, made.network.partition, made.network.kernels);
  EXPECT_TRUE(planned.ok()) << planned.status();
  if (planned.ok()) made.plan = MakeGpuPlan(*planned, made.network.graph, made.network.kernels);
  return made;
}

// The buffer of a parameter.
int BufferOf(const GpuPlan& plan, int part) { return plan.parts[part].buffer; }

TEST(MakeGpuPlanTest, EachConstantHasABufferAndTensorsArePartsOfOthers) {
  const auto [network, plan] = PlanForGpu(/*pack=*/false);
  EXPECT_TRUE(plan.packing.empty());
  ASSERT_EQ(plan.steps.size(), 5u);
  int constants = 0;
  for (const GpuPlan::Buffer& buffer : plan.buffers) {
    constants += buffer.constant == graph::kNoValue ? 0 : 1;
    EXPECT_FALSE(buffer.only_for_packing);
  }
  EXPECT_EQ(constants, 3);
  for (const std::vector<GpuCommand>& step : plan.steps) {
    ASSERT_EQ(step.size(), 1u);
    const std::vector<int>& parts = step[0].parts;  // with packed constants and workspace
    EXPECT_EQ(parts[parts.size() - 2], GpuCommand::kNull);
    EXPECT_EQ(parts[parts.size() - 1], GpuCommand::kNull);
  }
  // The product reads x and w1, and writes to the arena.
  const std::vector<int>& product = plan.steps[0][0].parts;
  EXPECT_EQ(product[0], plan.inputs[0]);
  const graph::ValueId w1 = plan.buffers[BufferOf(plan, product[1])].constant;
  EXPECT_EQ(network.graph.value(w1).name, "w1");
  EXPECT_EQ(plan.parts[product[2]].offset % 512, 0);
  EXPECT_EQ(plan.parts[product[2]].bytes, 4 * 16 * 4);
  // The next kernel reads the same part.
  EXPECT_EQ(plan.steps[1][0].parts[0], product[2]);
}

TEST(MakeGpuPlanTest, PackedConstantsAreNotReadByOtherLaunches) {
  const GpuPlan plan = PlanForGpu(/*pack=*/true).plan;
  EXPECT_EQ(plan.packing.size(), 3u);
  for (const GpuCommand& command : plan.packing) {
    const int packed = command.parts[command.parts.size() - 2];
    ASSERT_NE(packed, GpuCommand::kNull);
    EXPECT_EQ(plan.buffers[BufferOf(plan, packed)].constant, graph::kNoValue);
  }
  for (const std::vector<GpuCommand>& step : plan.steps) {
    for (const GpuCommand& command : step) {
      for (const int part : command.parts) {
        if (part == GpuCommand::kNull) continue;
        EXPECT_FALSE(plan.buffers[BufferOf(plan, part)].only_for_packing);
      }
    }
  }
  const std::vector<int>& product = plan.steps[0][0].parts;
  EXPECT_EQ(product[1], GpuCommand::kNull) << "only the packed form of w1 is read";
  EXPECT_NE(product[3], GpuCommand::kNull);
}

}  // namespace
}  // namespace hone::network
