// What every runner of networks must do, on each kind of device.

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/plan/runner.h"
#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/graph/random_graph.h"
#include "tests/client/network/network_devices.h"
#include "tests/client/network/test_network.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::network {
namespace {

using ::testing::HasSubstr;
using Made = absl::StatusOr<std::unique_ptr<Runner>>;

std::vector<absl::string_view> Views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

absl::StatusOr<target::Target> CpuTarget() { return CompileOptions().target; }

Made MakeFromKernels(const TestNetwork& network) {
  return Runner::Create(network.graph, network.partition, network.kernels, {.threads = 2});
}
Made MakeOnOneThread(const TestNetwork& network) {
  return Runner::Create(network.graph, network.partition, network.kernels, {.threads = 1});
}
struct Candidate {
  const char* name;
  absl::StatusOr<target::Target> (*target)();  // an error: it cannot be tested on this machine
  Made (*make)(const TestNetwork& network);
  uint64_t random_graphs;  // as many as take a few seconds
};
void PrintTo(const Candidate& candidate, std::ostream* out) { *out << candidate.name; }

// One line for each way to run a network.
const Candidate kCandidates[] = {
    {"cpu", CpuTarget, MakeFromKernels, 10},
    {"cpu_with_one_thread", CpuTarget, MakeOnOneThread, 0},
    {"fake_cuda", FakeCudaTarget, MakeFromKernels, 3},
    {"opencl", OpenClTarget, MakeFromKernels, 3},
};

class RunnerConformanceTest : public testing::TestWithParam<Candidate> {
 protected:
  void SetUp() override {
    const absl::StatusOr<target::Target> target = GetParam().target();
    if (!target.ok()) GTEST_SKIP() << target.status().message();
    options_.target = *target;
  }

  TestNetwork CompileFor(const graph::Graph& graph, bool fuse = true, bool pack = false) {
    options_.fuse = fuse;
    options_.pack = pack;
    return Compile(graph, options_);
  }

  // Compares the outputs of the network with those of the interpreter.
  void ExpectRight(const TestNetwork& network) {
    const Made runner = GetParam().make(network);
    ASSERT_THAT(runner, IsOk());
    for (int seed = 0; seed < 2; ++seed) {
      const std::vector<std::string> inputs = MakeInputs(network.graph, seed);
      HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, (*runner)->Run(Views(inputs)));
      const std::vector<std::string> expected = Expected(network.graph, inputs);
      EXPECT_EQ(outputs, expected);
      std::vector<StepTime> times;
      HONE_ASSERT_OK_AND_ASSIGN(const auto timed, (*runner)->Run(Views(inputs), &times));
      EXPECT_EQ(timed, expected) << "with the times of the steps";
    }
  }

  CompileOptions options_;
};

TEST_P(RunnerConformanceTest, ComputesWhatTheGraphMeans) {
  ExpectRight(CompileFor(Residual(), /*fuse=*/true));
  ExpectRight(CompileFor(Residual(), /*fuse=*/false));
}

TEST_P(RunnerConformanceTest, PacksConstants) {
  for (const bool fuse : {false, true}) {
    const TestNetwork network = CompileFor(Residual(), fuse, /*pack=*/true);
    EXPECT_TRUE(std::any_of(network.kernels.begin(), network.kernels.end(),
                            [](const auto& kernel) { return kernel.packed_bytes > 0; }));
    ExpectRight(network);
  }
}

// Elements that are not f32: y = (x < w) as bool, a sum of i64, and a sum of f16.
TEST_P(RunnerConformanceTest, TensorsMayHaveOtherTypes) {
  graph::Graph graph = Residual();
  const graph::ValueId less = AddNode(graph, "Less", {graph.outputs[0], graph.inputs[0]});
  const graph::ValueId odd = graph.AddValue("odd", {ir::DType::kBool, {3}});
  const graph::ValueId count = graph.AddValue("count", {ir::DType::kI64, {5}});
  const graph::ValueId half = graph.AddValue("half", {ir::DType::kF16, {3, 3}});
  graph.inputs.insert(graph.inputs.end(), {odd, count, half});
  graph.outputs.insert(graph.outputs.end(),
                       {less, AddNode(graph, "Not", {odd}), AddNode(graph, "Add", {count, count}),
                        AddNode(graph, "Add", {half, half}), odd});
  ExpectRight(CompileFor(graph));
}

// Indices that are inputs or that the network computes. On a GPU, those that it computes are
// clamped.
TEST_P(RunnerConformanceTest, RefusesIndicesThatAreOutOfRange) {
  graph::Graph graph;
  const graph::ValueId table = graph.AddValue("table", {ir::DType::kF32, {5, 3}});
  const graph::ValueId ids = graph.AddValue("ids", {ir::DType::kI64, {4}});
  const graph::ValueId short_ids = graph.AddValue("short_ids", {ir::DType::kI32, {5, 1}});
  const graph::ValueId places = graph.AddValue("places", {ir::DType::kI64, {2, 2}});
  const graph::ValueId updates = graph.AddValue("updates", {ir::DType::kF32, {2}});
  graph.inputs = {table, ids, short_ids, places, updates};
  const graph::ValueId sum = AddNode(graph, "Add", {ids, ids});
  // Converted, as ScatterND needs i64.
  const graph::ValueId rows = graph.AddValue("rows", {ir::DType::kI32, {2, 1}});
  const graph::ValueId lines = graph.AddValue("lines", {ir::DType::kF32, {2, 3}});
  const graph::ValueId lengths = graph.AddValue("lengths", {ir::DType::kI64, {3}});
  graph.inputs.insert(graph.inputs.end(), {rows, lines, lengths});
  graph.outputs = {AddNode(graph, "Gather", {table, ids}),
                   AddNode(graph, "GatherElements", {table, short_ids}, {{"axis", int64_t{1}}}),
                   AddNode(graph, "ScatterND", {table, places, updates}),
                   AddNode(graph, "Gather", {table, sum}), sum};
  const graph::ValueId wide = AddNode(graph, "Cast", {rows}, {{"to", int64_t{7}}});
  graph.outputs.push_back(AddNode(graph, "ScatterND", {table, wide, lines}));
  graph.outputs.push_back(AddNode(graph, "ReverseSequence", {table, lengths}));
  const TestNetwork network = CompileFor(graph);
  const Made runner = GetParam().make(network);
  ASSERT_THAT(runner, IsOk());
  std::vector<ir::Scalars> given = {ir::Scalars(15, 1.0), {0, 1, -2, 2}, {0, 2, -3, 1, -1},
                                    {0, 2, -5, -3},       {7.0, 8.0},    {4, -5},
                                    ir::Scalars(6, 2.0),  {5, 0, 2}};
  const auto run = [&](int input, int element, int64_t index) {
    std::vector<ir::Scalars> changed = given;
    if (input > 0) changed[input][element] = index;
    std::vector<std::string> bytes;
    for (size_t i = 0; i < changed.size(); ++i) {
      bytes.push_back(graph::Encode(graph.value(graph.inputs[i]).type, changed[i]));
    }
    const auto outputs = (*runner)->Run(Views(bytes));
    if (outputs.ok()) {
      EXPECT_EQ(*outputs, Expected(graph, bytes));
    }
    return outputs.status().ToString();
  };
  EXPECT_EQ(run(0, 0, 0), "OK");
  EXPECT_EQ(run(2, 4, 2), "OK");
  EXPECT_EQ(run(3, 0, 4), "OK");
  // Step n1 reads input 1, and so on.
  const auto expect_refused = [&](int input, int element, int64_t index, int64_t extent) {
    EXPECT_THAT(
        run(input, element, index),
        HasSubstr(absl::StrCat("step 'n", input, "': element ", element, " of '",
                               graph.value(graph.inputs[input]).name, "' is ", index,
                               ", but indices must be from -", extent, " to ", extent - 1)));
  };
  for (const int64_t most : {int64_t{5}, std::numeric_limits<int64_t>::max()})
    expect_refused(1, 3, most, 5);
  for (const int64_t least : {int64_t{-6}, std::numeric_limits<int64_t>::min()})
    expect_refused(1, 0, least, 5);
  expect_refused(2, 4, 3, 3);
  expect_refused(2, 0, -4, 3);
  // The columns of the places have different ranges.
  expect_refused(3, 1, 4, 3);
  expect_refused(3, 2, 5, 5);
  // Lengths do not count from the end.
  for (const int64_t length : {-1, 6}) {
    EXPECT_THAT(run(7, 1, length), HasSubstr(absl::StrCat("element 1 of 'lengths' is ", length,
                                                          ", but indices must be from 0 to 5")));
  }
  if (options_.target.kind != target::Kind::kCpu) return;
  EXPECT_THAT(run(1, 2, -3), HasSubstr("step 'n4': element 2 of 't0' is -6, but"));
  EXPECT_THAT(run(5, 1, 7), HasSubstr("is 7, but indices must be from -5 to 4"));
}

// Unlike indices of a Gather, positions do not count from the end.
TEST_P(RunnerConformanceTest, RefusesPositionsThatAreOutOfRange) {
  graph::Graph graph;
  const graph::ValueId x = graph.AddValue("x", {ir::DType::kF32, {1, 1, 2, 4}});
  const graph::ValueId cos = graph.AddValue("cos", {ir::DType::kF32, {6, 2}});
  const graph::ValueId sin = graph.AddValue("sin", {ir::DType::kF32, {6, 2}});
  const graph::ValueId positions = graph.AddValue("positions", {ir::DType::kI64, {1, 2}});
  const graph::ValueId cache = graph.AddValue("cache", {ir::DType::kF32, {1, 1, 5, 4}});
  const graph::ValueId begin = graph.AddValue("begin", {ir::DType::kI64, {1}});
  graph.inputs = {x, cos, sin, positions, cache, begin};
  const graph::ValueId sum = AddNode(graph, "Add", {positions, positions});
  graph.outputs = {AddNode(graph, "RotaryEmbedding", {x, cos, sin, positions}),
                   AddNode(graph, "TensorScatter", {cache, x, begin}),
                   AddNode(graph, "RotaryEmbedding", {x, cos, sin, sum})};
  const TestNetwork network = CompileFor(graph);
  const Made runner = GetParam().make(network);
  ASSERT_THAT(runner, IsOk());
  const auto run = [&](int64_t position, int64_t first) {
    std::vector<std::string> bytes = MakeInputs(graph, 1);
    bytes[3] = graph::Encode(graph.value(positions).type, {0, position});
    bytes[5] = graph::Encode(graph.value(begin).type, {first});
    return (*runner)->Run(Views(bytes)).status().ToString();
  };
  EXPECT_EQ(run(0, 0), "OK");
  EXPECT_EQ(run(2, 3), "OK");
  for (const int64_t position : {-1, -6, 6}) {
    EXPECT_THAT(run(position, 0), HasSubstr(absl::StrCat("element 1 of 'positions' is ", position,
                                                         ", but indices must be from 0 to 5")));
  }
  for (const int64_t first : {-1, 4}) {
    EXPECT_THAT(run(0, first), HasSubstr(absl::StrCat("element 0 of 'begin' is ", first,
                                                      ", but indices must be from 0 to 3")));
  }
  if (options_.target.kind != target::Kind::kCpu) return;
  EXPECT_THAT(run(3, 0), HasSubstr("is 6, but indices must be from 0 to 5"));
}

// An output of the network may be one of its inputs, a constant, or appear twice.
TEST_P(RunnerConformanceTest, CopiesOutputsThatNoKernelWrites) {
  graph::Graph graph = Residual();
  const graph::ValueId w1 = 1;
  graph.outputs = {graph.outputs[0], graph.inputs[0], graph.outputs[0], w1};
  ExpectRight(CompileFor(graph));
}

// x is split into halves of `width` columns, of which one is changed; they are joined again and
// reshaped.
graph::Graph Aliases(int64_t width) {
  graph::Graph graph;
  const graph::ValueId x = graph.AddValue("x", {ir::DType::kF32, {4, width}});
  graph.inputs = {x};
  EXPECT_THAT(graph.AddNode({"split", "Split", {x}, {}, {{"num_outputs", int64_t{2}}}}, {"a", "b"}),
              IsOk());
  const graph::ValueId a = graph.nodes[0].outputs[0], b = graph.nodes[0].outputs[1];
  const graph::ValueId w = AddWeights(graph, "w", {2, width});
  const graph::ValueId more = AddNode(graph, "Mul", {a, w}), less = AddNode(graph, "Add", {b, w});
  const graph::ValueId both = AddNode(graph, "Concat", {more, less}, {{"axis", int64_t{0}}});
  const graph::TensorType shape{ir::DType::kI64, {2}};
  const graph::ValueId extents = graph.AddConstant(
      "extents", shape, graph::ConstantData(graph::Encode(shape, {int64_t{8}, width / 2})));
  graph.outputs = {AddNode(graph, "Reshape", {both, extents})};
  return graph;
}

// The second halves begin at a multiple of 512 bytes, where every device accepts them.
TEST_P(RunnerConformanceTest, AliasesTakeNoKernel) {
  const TestNetwork network = CompileFor(Aliases(64));
  EXPECT_EQ(network.kernels.size(), 2u);  // Mul and Add
  ExpectRight(network);
}

TEST_P(RunnerConformanceTest, PartsThatCannotBeAliasesAreCopied) {
  ExpectRight(CompileFor(Aliases(14)));
}

// Tensors without elements need no memory, which devices would refuse.
TEST_P(RunnerConformanceTest, TensorsMayBeEmpty) {
  graph::Graph graph = Residual();
  const graph::TensorType empty{ir::DType::kF32, {0, 3}};
  const graph::ValueId input = graph.AddValue("empty", empty);
  graph.inputs.push_back(input);
  const graph::ValueId constant = graph.AddConstant("nothing", empty, graph::ConstantData(""));
  graph.outputs.insert(graph.outputs.begin(), {input, constant});
  const TestNetwork network = CompileFor(graph);
  ExpectRight(network);
  const Made runner = GetParam().make(network);
  ASSERT_THAT(runner, IsOk());
  const std::vector<std::string> inputs = MakeInputs(network.graph);
  EXPECT_EQ(*(*runner)->Run({inputs[0], absl::string_view()}), Expected(network.graph, inputs));
}

TEST_P(RunnerConformanceTest, InputsMayBeMissing) {
  graph::Graph graph;
  graph.outputs = {AddNode(graph, "Relu", {AddWeights(graph, "w", {4, 8})})};
  ExpectRight(CompileFor(graph));
  graph.nodes.clear();
  graph.outputs = {0};
  ExpectRight(CompileFor(graph));
  // All that is left may be empty.
  graph.outputs = {
      graph.AddConstant("nothing", {ir::DType::kF32, {0, 3}}, graph::ConstantData(""))};
  ExpectRight(CompileFor(graph));
}

// A reduction to a tuple, of which only one tensor leaves the kernel; and means without the rest.
TEST_P(RunnerConformanceTest, SomeOutputsOfANodeMayBeUnused) {
  graph::Graph graph;
  const graph::ValueId x = graph.AddValue("x", {ir::DType::kF32, {1, 2, 6, 4}});
  graph.inputs = {x};
  const std::map<std::string, graph::Attribute> window = {
      {"kernel_shape", std::vector<int64_t>{2, 3}}, {"strides", std::vector<int64_t>{2, 1}}};
  ASSERT_THAT(graph.AddNode({"pool", "MaxPool", {x}, {}, window}, {"y", "at"}), IsOk());
  graph.outputs = {graph.nodes.back().outputs[1],
                   AddNode(graph, "Neg", {graph.nodes.back().outputs[0]})};
  ASSERT_THAT(graph.AddNode({"places", "MaxPool", {x}, {}, window}, {"", "only_at"}), IsOk());
  graph.outputs.push_back(graph.nodes.back().outputs[1]);
  const graph::ValueId scale = AddWeights(graph, "scale", {4});
  ASSERT_THAT(graph.AddNode({"norm", "LayerNormalization", {x, scale}, {}, {}}, {"", "mean"}),
              IsOk());
  graph.outputs.push_back(graph.nodes.back().outputs[1]);
  for (const bool fuse : {true, false}) ExpectRight(CompileFor(graph, fuse));
}

TEST_P(RunnerConformanceTest, InputsMayBeUnused) {
  graph::Graph graph = Residual();
  graph.inputs.push_back(graph.AddValue("unused", {ir::DType::kF32, {3}}));
  ExpectRight(CompileFor(graph));
}

TEST_P(RunnerConformanceTest, OutputsMayBeViews) {
  graph::Graph graph = Aliases(64);
  const graph::ValueId a = graph.nodes[0].outputs[0], b = graph.nodes[0].outputs[1];
  graph.outputs = {b, graph.outputs[0], a, graph.nodes[3].outputs[0], graph.nodes[1].outputs[0]};
  ExpectRight(CompileFor(graph));
}

TEST_P(RunnerConformanceTest, OutputsMayBeViewsOfConstants) {
  graph::Graph graph = Residual();
  const graph::ValueId w = AddWeights(graph, "w", {4, 128});
  EXPECT_THAT(graph.AddNode({"split", "Split", {w}, {}, {{"num_outputs", int64_t{2}}}}, {"a", "b"}),
              IsOk());
  const graph::ValueId b = graph.nodes.back().outputs[1], a = graph.nodes.back().outputs[0];
  graph.outputs = {b, graph.outputs[0], a};
  ExpectRight(CompileFor(graph));
}

TEST_P(RunnerConformanceTest, SeveralRunnersTakeTurns) {
  const TestNetwork network = CompileFor(Residual());
  const std::vector<std::string> inputs = MakeInputs(network.graph);
  const std::vector<std::string> expected = Expected(network.graph, inputs);
  const Made first = GetParam().make(network);
  Made second = GetParam().make(network);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  const auto expect_right = [&](Runner& runner) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, runner.Run(Views(inputs)));
    EXPECT_EQ(outputs, expected);
  };
  expect_right(**first);
  expect_right(**second);
  expect_right(**first);
  second->reset();
  expect_right(**first);
}

TEST_P(RunnerConformanceTest, TellsTheTimeOfEachStep) {
  graph::Graph graph = Residual();
  graph.outputs.push_back(graph.inputs[0]);  // a copy
  const TestNetwork network = CompileFor(graph, /*fuse=*/false);
  const Made runner = GetParam().make(network);
  ASSERT_THAT(runner, IsOk());
  const std::vector<std::string> inputs = MakeInputs(network.graph);
  std::vector<StepTime> times;
  ASSERT_THAT((*runner)->Run(Views(inputs), &times), IsOk());
  ASSERT_EQ(times.size(), 6u);
  EXPECT_EQ(times[0].name, "n0");
  EXPECT_EQ(times[0].kernel, network.partition.tasks[0].workload.name);
  EXPECT_EQ(times[5].kernel, "copy");
  for (const StepTime& time : times) EXPECT_GE(time.ns, 0);
}

TEST_P(RunnerConformanceTest, RefusesWrongInputs) {
  const TestNetwork network = CompileFor(Residual());
  const Made runner = GetParam().make(network);
  ASSERT_THAT(runner, IsOk());
  EXPECT_THAT(std::string((*runner)->Run({}).status().message()),
              HasSubstr("the network has 1 inputs, not 0"));
  EXPECT_THAT(std::string((*runner)->Run({"short"}).status().message()),
              HasSubstr("input 0 has 128 bytes, not 5"));
}

TEST_P(RunnerConformanceTest, NeedsAKernelForEachTask) {
  TestNetwork network = CompileFor(Residual());
  network.kernels.pop_back();
  EXPECT_THAT(GetParam().make(network), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(RunnerConformanceTest, RandomGraphsComputeWhatTheInterpreterDoes) {
  for (uint64_t seed = 1; seed <= GetParam().random_graphs; ++seed) {
    graph::RandomGraph random(seed, ir::DType::kF32);
    const graph::Graph graph = random.Draw(3);
    if (graph.nodes.empty()) continue;
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\n", graph.ToText()));
    const TestNetwork network = CompileFor(graph);
    const Made runner = GetParam().make(network);
    ASSERT_THAT(runner, IsOk());
    std::vector<std::string> inputs;
    const std::vector<ir::Scalars> elements = random.DrawInputs(graph);
    for (size_t i = 0; i < elements.size(); ++i) {
      inputs.push_back(graph::Encode(graph.value(graph.inputs[i]).type, elements[i]));
    }
    HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, (*runner)->Run(Views(inputs)));
    const auto decode = [&](const std::vector<std::string>& tensors) {
      std::vector<ir::Scalars> decoded;
      for (size_t o = 0; o < tensors.size(); ++o) {
        decoded.push_back(graph::Decode(graph.value(graph.outputs[o]).type, tensors[o]));
      }
      return decoded;
    };
    EXPECT_EQ(graph::Difference(decode(Expected(graph, inputs)), decode(outputs), 1e-4), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, RunnerConformanceTest, testing::ValuesIn(kCandidates),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RunnerTest, KernelsOfSeveralDevicesAreRefused) {
  TestNetwork network = Compile(Residual(), {.fuse = false});
  HONE_ASSERT_OK_AND_ASSIGN(network.kernels[1].target, FakeCudaTarget());
  network.kernels[1].module = std::make_shared<target::GpuModule>();
  EXPECT_THAT(MakeFromKernels(network), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 HasSubstr("all must be for one device")));
}

}  // namespace
}  // namespace hone::network
