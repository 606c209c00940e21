#ifndef HONE_TESTS_CLIENT_NETWORK_TEST_NETWORK_H_
#define HONE_TESTS_CLIENT_NETWORK_TEST_NETWORK_H_

#include <string>
#include <vector>

#include "client/network/graph/graph.h"
#include "client/network/graph/partition.h"
#include "client/network/plan/network_kernel.h"
#include "common/ir/interpreter.h"
#include "common/target/target.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::network {

// A network with a compiled kernel for each task.
struct TestNetwork {
  graph::Graph graph;
  graph::Partition partition;
  std::vector<NetworkKernel> kernels;
};

struct CompileOptions {
  bool fuse = true;
  bool pack = false;  // the first constant of each kernel, which then has another schedule
  target::Target target = codegen::Preset("x86-avx2");  // GPUs get the untiled schedule
};

// Divides the graph into tasks and compiles them with the code generator. CUDA kernels are compiled
// for the fakes of tests/fakes/cuda. Reports errors as test failures.
TestNetwork Compile(graph::Graph graph, const CompileOptions& options = {});

// Appends a constant whose elements are small integers.
graph::ValueId AddWeights(graph::Graph& graph, const std::string& name, std::vector<int64_t> shape);

// Appends a node with one output, and returns that.
graph::ValueId AddNode(graph::Graph& graph, const std::string& op,
                       std::vector<graph::ValueId> inputs,
                       std::map<std::string, graph::Attribute> attributes = {});

// out = relu(x · w1 + b1) · w2 + x, and hidden = x · w1 + b1. Sums of small integers are exact.
graph::Graph Residual();

// Elements of the inputs of a graph: small integers that depend on the seed.
std::vector<std::string> MakeInputs(const graph::Graph& graph, int seed = 0);

// The outputs that the graph's interpreter computes.
std::vector<std::string> Expected(const graph::Graph& graph,
                                  const std::vector<std::string>& inputs);

}  // namespace hone::network

#endif  // HONE_TESTS_CLIENT_NETWORK_TEST_NETWORK_H_
