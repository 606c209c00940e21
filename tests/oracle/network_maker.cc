#include "tests/oracle/network_maker.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/partition.h"
#include "client/network/graph/pass/passes.h"
#include "client/network/onnx/import.h"
#include "client/network/plan/network_kernel.h"
#include "client/network/plan/plan.h"
#include "client/network/plan/runner.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/ir/region.h"
#include "common/target/target.h"
#include "nlohmann/json.hpp"
#include "server/tuner/space/generate.h"
#include "worker/builder/link.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::oracle {
namespace {

using nlohmann::json;

absl::StatusOr<std::string> Unescaped(const json& text) {
  std::string bytes;
  if (absl::Base64Unescape(text.get<std::string>(), &bytes)) return bytes;
  return absl::InvalidArgumentError("a field is not in base 64");
}

// The default schedule of a workload, or a random one of its design spaces.
absl::StatusOr<ir::Program> Schedule(const std::shared_ptr<const ir::Workload>& workload,
                                     const target::Target& target, bool is_random, Rng& rng) {
  if (is_random) {
    HONE_ASSIGN_OR_RETURN(const auto spaces, space::GenerateDesignSpaces(workload, target));
    const space::DesignSpace& space = *spaces[rng.Below(spaces.size())];
    // Some decisions cannot be replayed; a search drops them, too.
    if (const auto decisions = space.Sample(rng); decisions.ok()) {
      if (auto program = space.Replay(*decisions); program.ok()) return program;
    }
  }
  HONE_ASSIGN_OR_RETURN(const auto space, space::DefaultCandidate(workload, target));
  return space->Replay({});
}

absl::StatusOr<network::NetworkKernel> MakeKernel(const ir::Workload& workload,
                                                  const target::Target& target, bool is_random,
                                                  Rng& rng) {
  const auto shared = std::make_shared<const ir::Workload>(workload);
  HONE_ASSIGN_OR_RETURN(const ir::Program program, Schedule(shared, target, is_random, rng));
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, target));
  HONE_ASSIGN_OR_RETURN(codegen::Code code, codegen::Generate(lowered, target));
  HONE_ASSIGN_OR_RETURN(std::string linked, builder::LinkSharedObject(code.bytes, {}));
  return network::LoadKernel({.shared_object = std::move(linked),
                              .object = std::move(code.bytes),
                              .workload = workload.ToText(),
                              .program = program.ToText(),
                              .target = target.ToText(),
                              .reads = record::ReadsText(ir::InputsThatRunReads(program))});
}

}  // namespace

absl::StatusOr<NetworkRequest> ParseNetworkRequest(absl::string_view line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::InvalidArgumentError("the request is not a JSON object");
  NetworkRequest request;
  try {
    HONE_ASSIGN_OR_RETURN(request.model, Unescaped(object.at("network")));
    for (const json& run : object.at("inputs")) {
      std::vector<std::string>& inputs = request.inputs.emplace_back();
      for (const json& input : run) {
        HONE_ASSIGN_OR_RETURN(inputs.emplace_back(), Unescaped(input));
      }
    }
    request.seed = object.at("seed").get<uint64_t>();
    request.is_random = object.at("random").get<bool>();
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return request;
}

absl::StatusOr<NetworkAnswer> RunNetwork(const NetworkRequest& request,
                                         const std::function<void(const std::string&)>& on_step) {
  on_step("import the model");
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, onnx::ImportOnnxBytes(request.model, ""));
  HONE_RETURN_IF_ERROR(graph::Optimize(graph));
  HONE_ASSIGN_OR_RETURN(target::Target target, target::TargetByName("native"));
  Rng rng(request.seed, /*purpose=*/2);
  target.cores = 1 + static_cast<int>(rng.Below(2));
  HONE_ASSIGN_OR_RETURN(
      const graph::Partition partition,
      graph::MakePartition(graph, network::PartitionOptionsFor(target::Kind::kCpu)));
  std::vector<network::NetworkKernel> kernels;
  for (const graph::Task& task : partition.tasks) {
    on_step(absl::StrCat("build a kernel of\n", task.workload.ToText()));
    HONE_ASSIGN_OR_RETURN(kernels.emplace_back(),
                          MakeKernel(task.workload, target, request.is_random, rng));
  }
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<network::Runner> runner,
      network::Runner::Create(graph, partition, kernels, {.threads = target.cores}));
  NetworkAnswer answer;
  for (const graph::ValueId id : graph.outputs) answer.types.push_back(graph.value(id).type);
  for (const std::vector<std::string>& run : request.inputs) {
    on_step("run the network");
    const std::vector<absl::string_view> inputs(run.begin(), run.end());
    HONE_ASSIGN_OR_RETURN(answer.outputs.emplace_back(), runner->Run(inputs));
  }
  return answer;
}

}  // namespace hone::oracle
