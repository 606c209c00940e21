#include "client/network/graph/pass/bf16_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "client/network/graph/interpreter.h"
#include "client/network/graph/pass/passes.h"
#include "common/base/rng.h"
#include "tests/client/network/graph/net.h"
#include "tests/client/network/graph/run_steps.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ir::DType;
using testing::Each;
using testing::SizeIs;

// A network and some of its inputs.
class Bf16TensorsTest : public testing::Test {
 protected:
  std::vector<double> Random(int64_t elements) {
    std::vector<double> drawn(elements);
    for (double& element : drawn) element = static_cast<double>(rng_.Below(2001)) / 1000 - 1;
    return drawn;
  }
  ValueId Dense(ValueId x, int64_t outputs) {
    const int64_t inputs = net_.graph.value(x).type.shape.back();
    std::vector<double> weights = Random(inputs * outputs);
    for (double& weight : weights) weight /= std::sqrt(static_cast<double>(inputs));
    return net_.Apply("MatMul", {x, net_.Weights({inputs, outputs}, weights)});
  }
  ValueId Relu(ValueId x) { return net_.Apply("Relu", {x}); }

  DividedGraph Divide(ValueId output) {
    net_.graph.outputs = {output};
    EXPECT_THAT(Optimize(net_.graph), IsOk());
    const auto partition = MakePartition(net_.graph);
    EXPECT_THAT(partition, IsOk());
    for (const ValueId id : net_.graph.inputs) {
      const std::vector<double> drawn = Random(net_.graph.value(id).type.elements());
      inputs_.emplace_back(drawn.begin(), drawn.end());
    }
    return {net_.graph, *partition};
  }
  static Bf16Network Narrowed(const DividedGraph& divided, const std::vector<ValueId>& tensors) {
    auto narrow = StoreInBf16(divided, tensors, {});
    EXPECT_THAT(narrow, IsOk());
    EXPECT_THAT(narrow->divided.graph.Verify(), IsOk());
    return *std::move(narrow);
  }
  // The output of a network, computed step by step.
  std::vector<double> Output(const DividedGraph& divided, std::vector<ir::Scalars> more = {}) {
    std::vector<ir::Scalars> inputs = inputs_;
    for (ir::Scalars& each : more) inputs.push_back(std::move(each));
    const auto outputs = RunSteps(divided.graph, divided.partition, inputs);
    EXPECT_THAT(outputs, IsOk());
    std::vector<double> numbers;
    for (const ir::Scalar element : (*outputs)[0]) numbers.push_back(element.real());
    return numbers;
  }
  // The types of the results of kernels, without the last one.
  static std::vector<DType> TypesBetween(const DividedGraph& divided) {
    std::vector<DType> types;
    for (const Step& step : divided.partition.steps) {
      if (step.kind != Step::Kind::kKernel) continue;
      for (const ValueId id : step.outputs) types.push_back(divided.graph.value(id).type.dtype);
    }
    types.pop_back();
    return types;
  }
  static size_t Kernels(const Partition& partition) {
    return std::count_if(partition.steps.begin(), partition.steps.end(),
                         [](const Step& step) { return step.kind == Step::Kind::kKernel; });
  }
  static double Largest(const std::vector<double>& a, const std::vector<double>& b) {
    double largest = 0;
    for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
  }

  Net net_;
  std::vector<ir::Scalars> inputs_;
  Rng rng_{5, 0};
};

TEST_F(Bf16TensorsTest, KernelsRoundAndConvert) {
  ValueId x = net_.Input({32, 48});
  for (int layer = 0; layer < 3; ++layer) x = Relu(Dense(x, 48));
  const DividedGraph divided = Divide(Dense(x, 8));
  const std::vector<ValueId> tensors = TensorsBetweenKernels(divided);
  EXPECT_THAT(tensors, SizeIs(3));
  const Bf16Network narrow = Narrowed(divided, tensors);
  EXPECT_EQ(narrow.tensors, tensors);
  EXPECT_EQ(Kernels(narrow.divided.partition), Kernels(divided.partition));
  EXPECT_THAT(TypesBetween(narrow.divided), Each(DType::kBF16));
  const double difference = Largest(Output(narrow.divided), Output(divided));
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 0.02);
}

TEST_F(Bf16TensorsTest, SeveralReadersConvertForThemselves) {
  ValueId x = Relu(Dense(net_.Input({32, 48}), 48));
  const ValueId branch = Relu(Dense(x, 48));
  x = Relu(net_.Apply("Add", {Dense(branch, 48), x}));
  const DividedGraph divided = Divide(Dense(x, 8));
  const Bf16Network narrow = Narrowed(divided, TensorsBetweenKernels(divided));
  EXPECT_THAT(narrow.tensors, SizeIs(3));
  EXPECT_EQ(Kernels(narrow.divided.partition), Kernels(divided.partition));
  EXPECT_THAT(TypesBetween(narrow.divided), Each(DType::kBF16));
}

TEST_F(Bf16TensorsTest, ViewsAndTransposedOperandsAreInBf16) {
  const ValueId x = net_.Input({32, 64});
  const auto heads = [&](std::vector<int64_t> order) {
    const ValueId parts = net_.Apply("Reshape", {Dense(x, 64), net_.Ints({1, 32, 4, 16})});
    return net_.Apply("Transpose", {parts}, {{"perm", std::move(order)}});
  };
  const ValueId scores = net_.Apply("MatMul", {heads({0, 2, 1, 3}), heads({0, 2, 3, 1})});
  const ValueId shares = net_.Apply("Softmax", {scores}, {{"axis", int64_t{-1}}});
  const DividedGraph divided = Divide(net_.Apply("MatMul", {shares, heads({0, 2, 1, 3})}));
  const Bf16Network narrow = Narrowed(divided, TensorsBetweenKernels(divided));
  EXPECT_EQ(Kernels(narrow.divided.partition), Kernels(divided.partition));
  EXPECT_THAT(narrow.tensors, SizeIs(Kernels(divided.partition) - 1));
  EXPECT_THAT(TypesBetween(narrow.divided), Each(DType::kBF16));
  EXPECT_LT(Largest(Output(narrow.divided), Output(divided)), 0.02);
}

TEST_F(Bf16TensorsTest, OutputsSmallTensorsAndJoinedOnesKeepF32) {
  const ValueId x = net_.Input({32, 48});
  const ValueId small = Dense(x, 8), first = Dense(x, 48), second = Dense(x, 48);
  const ValueId joined = net_.Apply("Concat", {first, second}, {{"axis", int64_t{0}}});
  const ValueId wide = net_.Apply("MatMul", {small, net_.Weights({8, 48})});
  net_.graph.outputs = {wide};
  const DividedGraph divided = Divide(net_.Apply("Concat", {joined, wide}, {{"axis", int64_t{0}}}));
  EXPECT_THAT(TensorsBetweenKernels(divided), SizeIs(0));
}

TEST_F(Bf16TensorsTest, RoundingOnDemandGivesTheOutputsOfEachChoice) {
  ValueId x = net_.Input({32, 48});
  for (int layer = 0; layer < 3; ++layer) x = Relu(Dense(x, 48));
  const DividedGraph divided = Divide(Dense(x, 8));
  const std::vector<ValueId> tensors = TensorsBetweenKernels(divided);
  ASSERT_THAT(tensors, SizeIs(3));
  const auto rounding = RoundOnDemand(divided, tensors);
  ASSERT_THAT(rounding, IsOk());
  EXPECT_EQ(rounding->partition.tasks.size(), divided.partition.tasks.size() + 1);
  for (const auto& chosen : std::vector<std::vector<size_t>>{{}, {1}, {0, 2}, {0, 1, 2}}) {
    std::vector<ir::Scalars> flags(3, {ir::CastTo(DType::kBool, 0.0)});
    std::vector<ValueId> some;
    for (const size_t t : chosen) {
      flags[t] = {ir::CastTo(DType::kBool, 1.0)};
      some.push_back(tensors[t]);
    }
    EXPECT_EQ(Output(*rounding, flags), Output(Narrowed(divided, some).divided));
  }
}

}  // namespace
}  // namespace hone::graph
