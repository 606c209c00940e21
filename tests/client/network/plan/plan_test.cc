// Plans as C++ writes them and the runtime reads them.

#include "client/network/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "client/network/runtime/plan_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/test_network.h"
#include "tests/status.h"

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

// The plan of a network with OpenCL kernels.
Plan PlanForGpu(bool pack) {
  const TestNetwork network = Compile(
      Residual(), {.fuse = false, .pack = pack, .target = codegen::Preset("generic/opencl")});
  const auto planned = MakePlan(network.graph, network.partition, network.kernels);
  EXPECT_THAT(planned, IsOk());
  return planned.ok() ? planned->plan : Plan();
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

// Checks that what the runtime does with a plan stays inside its bytes and its memory.
void ExpectUsable(const HonePlan& plan, size_t bytes) {
  for (uint32_t t = 0; t < plan.header->tensors; ++t) {
    EXPECT_LT(std::strlen(plan.texts + plan.tensors[t].name), bytes);
  }
  for (uint32_t l = 0; l < plan.header->launches; ++l) {
    const HonePlanLaunch& launch = plan.launches[l];
    for (int d = 0; d < 3; ++d) {
      const uint64_t threads = uint64_t{launch.grid[d]} * launch.block[d];
      EXPECT_TRUE(threads > 0 && threads <= UINT32_MAX) << threads;
    }
    EXPECT_LE(uint64_t{launch.block[0]} * launch.block[1] * launch.block[2], 1u << 16);
    EXPECT_LE(launch.shared_bytes, 1u << 30);
  }
  for (uint32_t s = 0; s < plan.header->steps + plan.header->packing; ++s) {
    const bool packs = s >= plan.header->steps;
    for (uint32_t b = 0; b < plan.steps[s].buffers && plan.header->is_gpu; ++b) {
      const HonePlanTensor& tensor = plan.tensors[plan.buffers[plan.steps[s].first_buffer + b]];
      const bool in_weights = tensor.place == HONE_PLACE_WEIGHTS;
      EXPECT_TRUE(!packs || in_weights || tensor.place == HONE_PLACE_ABSENT);
      if (packs || !in_weights || tensor.bytes == 0) continue;
      EXPECT_FALSE(hone_plan_piece(&plan, tensor.offset, tensor.bytes)->only_for_packing);
    }
  }
}

// Whatever is accepted, can be used (a sanitizer sees reads outside).
TEST(PlanTest, SurvivesDamage) {
  const std::string of_cpu = SmallPlan().Encode(), of_gpu = PlanForGpu(/*pack=*/true).Encode();
  HonePlan whole;
  const Bytes gpu_bytes(of_gpu);
  ASSERT_EQ(gpu_bytes.Read(&whole), nullptr);
  const auto begin_of = [&](const void* table) {
    return static_cast<size_t>(static_cast<const char*>(table) -
                               reinterpret_cast<const char*>(whole.header));
  };
  // The tables before the code, from the tensors on; and the launches and pieces alone.
  const size_t tensors = begin_of(whole.tensors), launches = begin_of(whole.launches),
               pieces_end = begin_of(whole.checks), code = begin_of(whole.code);
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 80000; ++round) {
    std::string damaged = round % 4 == 0 ? of_cpu : of_gpu;
    const size_t begin = round % 4 == 2 ? tensors : round % 4 == 3 ? launches : 0;
    const size_t end = round % 4 == 2 ? code : round % 4 == 3 ? pieces_end : damaged.size();
    for (int i = 0; i < 3; ++i) {
      damaged[begin + random() % (end - begin)] =
          static_cast<char>(random() % 3 == 0 ? 1 : random());
    }
    HonePlan plan;
    const Bytes copy(damaged);
    if (copy.Read(&plan) != nullptr) continue;
    ++accepted;
    ExpectUsable(plan, damaged.size());
  }
  EXPECT_GT(accepted, 1000);
}

// The place of each tensor, by its name.
std::map<std::string, PlaceKind> PlacesOf(const Plan& plan) {
  std::map<std::string, PlaceKind> places;
  for (const PlanTensor& tensor : plan.tensors) places[tensor.name] = tensor.place;
  return places;
}

TEST(MakePlanTest, PacksConstantsOnceAndDropsTheirPlainForm) {
  const TestNetwork network = Compile(Residual(), {.fuse = false, .pack = true});
  HONE_ASSERT_OK_AND_ASSIGN(auto planned,
                            MakePlan(network.graph, network.partition, network.kernels));
  EXPECT_EQ(PlacesOf(planned.plan)["w1"], PlaceKind::kAbsent);
  EXPECT_EQ(PlacesOf(planned.plan)["x"], PlaceKind::kInput);
  EXPECT_EQ(PlacesOf(planned.plan)["t4"], PlaceKind::kOutput);
  EXPECT_EQ(PlacesOf(planned.plan)["t2"], PlaceKind::kArena);
  for (const WeightsPiece& piece : planned.pieces) {
    EXPECT_EQ(piece.constant, graph::kNoValue);
    EXPECT_EQ(piece.offset % 64, 0);
  }
  EXPECT_EQ(WhatIsWrong(planned.plan), "nothing");
}

TEST(MakePlanTest, KeepsThePlainFormOfConstantsThatSomethingReads) {
  graph::Graph graph = Residual();
  const graph::ValueId w1 = 1;
  graph.outputs.push_back(w1);
  const TestNetwork network = Compile(graph, {.fuse = false, .pack = true});
  HONE_ASSERT_OK_AND_ASSIGN(auto planned,
                            MakePlan(network.graph, network.partition, network.kernels));
  EXPECT_EQ(planned.pieces.size(), 4u);  // three packed, and w1
  EXPECT_EQ(WhatIsWrong(planned.plan), "nothing");
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
  HONE_ASSERT_OK_AND_ASSIGN(auto planned,
                            MakePlan(network.graph, network.partition, network.kernels));
  EXPECT_EQ(planned.pieces.size(), 2u);
  EXPECT_EQ(planned.plan.steps[0].packed_offset, planned.plan.steps[1].packed_offset);
  EXPECT_NE(planned.plan.steps[0].packed_offset, planned.plan.steps[2].packed_offset);
}

TEST(MakePlanTest, OnAGpuEachConstantHasABuffer) {
  const Plan plan = PlanForGpu(/*pack=*/false);
  EXPECT_EQ(WhatIsWrong(plan), "nothing");
  EXPECT_TRUE(plan.packing.empty());
  EXPECT_EQ(plan.steps.size(), 5u);
  EXPECT_EQ(plan.pieces.size(), 3u);
  for (const PlanPiece& piece : plan.pieces) EXPECT_FALSE(piece.only_for_packing);
  for (const PlanTensor& tensor : plan.tensors) {
    EXPECT_TRUE(tensor.place != PlaceKind::kArena || tensor.offset % 512 == 0) << tensor.name;
  }
}

TEST(MakePlanTest, AGpuPacksConstantsItself) {
  const Plan plan = PlanForGpu(/*pack=*/true);
  EXPECT_EQ(WhatIsWrong(plan), "nothing");
  ASSERT_EQ(plan.packing.size(), 3u);
  ASSERT_EQ(plan.pieces.size(), 6u);
  for (size_t p = 0; p < plan.pieces.size(); ++p) {
    EXPECT_EQ(plan.pieces[p].only_for_packing, p < 3);
    EXPECT_EQ(plan.pieces[p].offset < plan.weights_bytes, p < 3);
  }
  EXPECT_EQ(plan.tensors[plan.steps[0].tensors[1]].name, "w1");
  EXPECT_EQ(plan.tensors[plan.steps[0].tensors[1]].place, PlaceKind::kAbsent)
      << "only the packed form of w1 is read";
  EXPECT_EQ(plan.steps[0].packed_offset, plan.packing[0].packed_offset);
  const PlanTensor& packed = plan.tensors[plan.packing[0].tensors[1]];
  EXPECT_EQ(packed.name, "w1");
  EXPECT_EQ(packed.place, PlaceKind::kWeights);
}

TEST(PlanTest, RefusesPlansThatWouldLeaveTheMemoryOfAGpu) {
  const Plan right = PlanForGpu(/*pack=*/true);
  const auto change = [&](auto&& edit) {
    Plan plan = right;
    edit(plan);
    return WhatIsWrong(plan);
  };
  EXPECT_EQ(change([](Plan& p) { p.pieces.pop_back(); }),
            "has packed constants outside the weights");
  EXPECT_EQ(change([](Plan& p) { p.pieces[0].offset = p.tensors[0].offset; }),
            "has a piece outside the weights");
  EXPECT_EQ(change([](Plan& p) { p.pieces[1].offset = p.pieces[0].offset; }),
            "has a piece outside the weights");
  EXPECT_EQ(change([](Plan& p) { p.pieces[2].bytes += 1 << 20; }),
            "has a piece outside the weights");
  EXPECT_EQ(change([](Plan& p) { p.pieces[0].bytes /= 2; }), "has a tensor outside the weights");
  EXPECT_EQ(change([](Plan& p) { p.steps[0].tensors[1] = p.packing[0].tensors[1]; }),
            "has a step that reads a constant which is there only for packing");
  EXPECT_EQ(change([](Plan& p) { p.pieces.back().only_for_packing = true; }),
            "has packed constants outside the weights");
  EXPECT_EQ(change([](Plan& p) { p.packing[0].tensors[0] = p.inputs[0]; }),
            "packs what is not constant");
  const auto launch = [&](auto&& edit) {
    return change([&](Plan& p) {
      auto module = std::make_shared<target::GpuModule>(*p.kernels[0].module);
      edit(module->launches[0]);
      p.kernels[0].module = std::move(module);
    });
  };
  using Launch = target::GpuLaunch;
  EXPECT_EQ(launch([](Launch& l) { l.grid = {65535, 1, 1}, l.block = {256, 16, 16}; }), "nothing");
  EXPECT_EQ(launch([](Launch& l) { l.grid[2] = 0; }), "has a launch without threads");
  EXPECT_EQ(launch([](Launch& l) { l.block[0] = 0; }), "has a launch without threads");
  EXPECT_EQ(launch([](Launch& l) { l.block = {256, 256, 2}; }), "has a launch of too many threads");
  EXPECT_EQ(launch([](Launch& l) { l.grid = {1 << 16, 1, 1}, l.block = {1 << 16, 1, 1}; }),
            "has a launch of too many threads");
  EXPECT_EQ(launch([](Launch& l) { l.shared_bytes = (1 << 30) + 1; }),
            "has a launch with too much shared memory");
  std::string bytes = right.Encode();
  HonePlanHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const size_t kernel = sizeof header + header.tensors * sizeof(HonePlanTensor) +
                        (header.steps + header.packing) * sizeof(HonePlanStep);
  const auto damage = [&](size_t at) {
    std::string damaged = bytes;
    damaged[kernel + at + 3] = 1;
    HonePlan plan;
    const char* const wrong = Bytes(damaged).Read(&plan);
    return std::string(wrong == nullptr ? "nothing" : wrong);
  };
  EXPECT_EQ(damage(offsetof(HonePlanKernel, code)), "has a kernel without its code");
  EXPECT_EQ(damage(offsetof(HonePlanKernel, code) + 8), "has a kernel without its code");
  EXPECT_EQ(damage(offsetof(HonePlanKernel, launches)), "has a kernel without its launches");
}

}  // namespace
}  // namespace hone::network
