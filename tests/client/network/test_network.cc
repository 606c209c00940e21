#include "tests/client/network/test_network.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "client/network/plan/plan.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/region.h"
#include "common/schedule/default_schedule.h"
#include "gtest/gtest.h"
#include "server/tuner/space/generate.h"
#include "tests/fakes/cuda/emulated_module.h"
#include "tests/status.h"
#include "worker/builder/link.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::network {
namespace {

// The first stage that reads a constant, with a schedule that packs it; "" if there is none.
std::string PackingTrace(const ir::Workload& workload) {
  for (const ir::Stage& stage : workload.stages) {
    ir::BufferId constant = -1;
    for (const ir::ExprId value : stage.values) {
      workload.pool.VisitLoads(value, [&](const ir::Expr& load) {
        if (workload.tensors[load.buffer].constant) constant = load.buffer;
      });
    }
    if (constant < 0) continue;
    return absl::StrCat(workload.ToText(), "trace 1\nb0 = block(\"",
                        workload.tensors[stage.tensors[0]].name, "\")\nb1 = cache_read(b0, \"",
                        workload.tensors[constant].name, "\", \"global\")\n");
  }
  return "";
}

absl::StatusOr<ir::Program> Schedule(const ir::Workload& workload, const CompileOptions& options) {
  const std::string packing = options.pack ? PackingTrace(workload) : "";
  if (!packing.empty()) return codegen::ReplayText(packing);
  const auto shared = std::make_shared<const ir::Workload>(workload);
  if (options.target.kind != target::Kind::kCpu) {
    HONE_ASSIGN_OR_RETURN(const auto space, space::DefaultCandidate(shared, options.target));
    return space->Replay({});
  }
  auto program = ir::Program::FromWorkload(shared);
  HONE_RETURN_IF_ERROR(schedule::ApplyDefaultSchedule(program, /*lanes=*/8));
  return program;
}

// What a runner loads: a shared object, or a module for a GPU.
absl::StatusOr<std::string> Link(const codegen::Code& code) {
  if (!code.module.has_value()) return builder::LinkSharedObject(code.bytes, {});
  target::GpuModule module = *code.module;
  module.code = code.bytes;
  if (module.kind == target::Kind::kCuda) {
    HONE_ASSIGN_OR_RETURN(module.code, cuda::BuildEmulatedModule(code.bytes));
  }
  return module.Encode();
}

absl::StatusOr<NetworkKernel> MakeKernel(const ir::Workload& workload,
                                         const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const ir::Program program, Schedule(workload, options));
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, options.target));
  HONE_ASSIGN_OR_RETURN(codegen::Code code, codegen::Generate(lowered, options.target));
  HONE_ASSIGN_OR_RETURN(std::string linked, Link(code));
  return LoadKernel({.shared_object = std::move(linked),
                     .object = std::move(code.bytes),
                     .workload = workload.ToText(),
                     .program = program.ToText(),
                     .target = options.target.ToText(),
                     .reads = record::ReadsText(ir::InputsThatRunReads(program))});
}

ir::Scalars SmallIntegers(const graph::TensorType& type, int seed) {
  ir::Scalars elements;
  for (int64_t i = 0; i < type.elements(); ++i) {
    elements.emplace_back(static_cast<double>((i * 7 + seed * 5 + i / 11) % 9 - 4));
  }
  return elements;
}

}  // namespace

TestNetwork Compile(graph::Graph graph, const CompileOptions& options) {
  TestNetwork network{.graph = std::move(graph)};
  graph::PartitionOptions division = PartitionOptionsFor(options.target.kind);
  division.fuse = options.fuse;
  const auto partition = graph::MakePartition(network.graph, division);
  EXPECT_THAT(partition, IsOk());
  if (!partition.ok()) return network;
  network.partition = *partition;
  for (const graph::Task& task : network.partition.tasks) {
    absl::StatusOr<NetworkKernel> kernel = MakeKernel(task.workload, options);
    EXPECT_THAT(kernel, IsOk()) << task.workload.ToText();
    if (kernel.ok()) network.kernels.push_back(*std::move(kernel));
  }
  return network;
}

graph::ValueId AddWeights(graph::Graph& graph, const std::string& name,
                          std::vector<int64_t> shape) {
  const graph::TensorType type{ir::DType::kF32, std::move(shape)};
  const int seed = static_cast<int>(graph.values.size());
  return graph.AddConstant(name, type,
                           graph::ConstantData(graph::Encode(type, SmallIntegers(type, seed))));
}

graph::ValueId AddNode(graph::Graph& graph, const std::string& op,
                       std::vector<graph::ValueId> inputs,
                       std::map<std::string, graph::Attribute> attributes) {
  const std::string number = absl::StrCat(graph.nodes.size());
  const absl::Status added =
      graph.AddNode({absl::StrCat("n", number), op, std::move(inputs), {}, std::move(attributes)},
                    {"t" + number});
  EXPECT_THAT(added, IsOk());
  return graph.nodes.back().outputs[0];
}

graph::Graph Residual() {
  graph::Graph graph;
  graph.name = "residual";
  const graph::ValueId x = graph.AddValue("x", {ir::DType::kF32, {4, 8}});
  graph.inputs = {x};
  const graph::ValueId w1 = AddWeights(graph, "w1", {8, 16}), b1 = AddWeights(graph, "b1", {16});
  const graph::ValueId w2 = AddWeights(graph, "w2", {16, 8});
  const graph::ValueId hidden = AddNode(graph, "Add", {AddNode(graph, "MatMul", {x, w1}), b1});
  const graph::ValueId relu = AddNode(graph, "Relu", {hidden});
  const graph::ValueId out = AddNode(graph, "Add", {AddNode(graph, "MatMul", {relu, w2}), x});
  graph.outputs = {out, hidden};
  return graph;
}

std::vector<std::string> MakeInputs(const graph::Graph& graph, int seed) {
  std::vector<std::string> inputs;
  for (const graph::ValueId id : graph.inputs) {
    const graph::TensorType& type = graph.value(id).type;
    inputs.push_back(graph::Encode(type, SmallIntegers(type, seed + id)));
  }
  return inputs;
}

std::vector<std::string> Expected(const graph::Graph& graph,
                                  const std::vector<std::string>& inputs) {
  std::vector<ir::Scalars> elements;
  for (size_t i = 0; i < inputs.size(); ++i) {
    elements.push_back(graph::Decode(graph.value(graph.inputs[i]).type, inputs[i]));
  }
  const auto outputs = graph::Interpret(graph, elements);
  EXPECT_THAT(outputs, IsOk());
  std::vector<std::string> bytes;
  for (size_t o = 0; outputs.ok() && o < outputs->size(); ++o) {
    bytes.push_back(graph::Encode(graph.value(graph.outputs[o]).type, (*outputs)[o]));
  }
  return bytes;
}

}  // namespace hone::network
