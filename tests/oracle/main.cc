// oracle_kernels: builds kernels for the oracle (README.md). It reads a request per line on
// standard input (request.h) and answers with lines of JSON on standard output, the last of which
// has the event "done". A request with the field "network" (network_maker.h) runs an ONNX model.
// The request {"operators": true} lists the operator library and the operators of ONNX instead.
#include <iostream>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/network/onnx/supported_operators.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "nlohmann/json.hpp"
#include "tests/oracle/kernel_maker.h"
#include "tests/oracle/network_maker.h"
#include "tests/oracle/request.h"

namespace hone::oracle {
namespace {

using nlohmann::json;

void Send(const json& message) {
  // An error message may contain any bytes.
  std::cout << message.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
}

json TensorsOf(const ir::Workload& workload, const std::vector<ir::BufferId>& ids) {
  json tensors = json::array();
  for (const ir::BufferId id : ids) {
    const ir::Tensor& tensor = workload.tensors[id];
    tensors.push_back({{"name", tensor.name},
                       {"dtype", ir::DTypeName(tensor.dtype)},
                       {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())}});
  }
  return tensors;
}

void SendOperators() {
  json operators = json::array();
  for (const op::OperatorInfo& info : op::Operators()) operators.push_back(info.name);
  json onnx = json::array();
  for (const onnx::SupportedOperator& supported : onnx::SupportedOperators()) {
    onnx.push_back(supported.name);
  }
  Send({{"event", "operators"}, {"names", operators}, {"onnx", onnx}});
}

void SendStep(const std::string& step) { Send({{"event", "step"}, {"step", step}}); }

void SendDone(const absl::Status& status) {
  Send({{"event", "done"}, {"ok", status.ok()}, {"detail", status.ok() ? "" : status.ToString()}});
}

absl::Status AnswerNetwork(const std::string& line) {
  HONE_ASSIGN_OR_RETURN(const NetworkRequest request, ParseNetworkRequest(line));
  HONE_ASSIGN_OR_RETURN(const NetworkAnswer answer, RunNetwork(request, SendStep));
  json types = json::array(), runs = json::array();
  for (const graph::TensorType& type : answer.types) {
    types.push_back({{"dtype", ir::DTypeName(type.dtype)}, {"shape", type.shape}});
  }
  for (const std::vector<std::string>& outputs : answer.outputs) {
    json& run = runs.emplace_back(json::array());
    for (const std::string& output : outputs) run.push_back(absl::Base64Escape(output));
  }
  Send({{"event", "outputs"}, {"types", types}, {"runs", runs}});
  return absl::OkStatus();
}

void Answer(const Request& request) {
  const Listener listener = {
      .on_step = SendStep,
      .on_workload =
          [](const ir::Workload& workload) {
            Send({{"event", "workload"},
                  {"text", workload.ToText()},
                  {"inputs", TensorsOf(workload, workload.Inputs())},
                  {"outputs", TensorsOf(workload, workload.Outputs())}});
          },
      .on_built =
          [](const Built& built) {
            Send({{"event", "kernel"},
                  {"origin", built.origin},
                  {"tolerance", built.tolerance},
                  {"outcome", record::OutcomeName(built.outcome)},
                  {"detail", built.detail},
                  {"path", built.shared_object},
                  {"own_check", built.own_check},
                  {"trace", built.trace}});
          },
      .on_reference =
          [](const absl::Status& status) {
            Send({{"event", "reference"},
                  {"ok", status.ok()},
                  {"detail", std::string(status.message())}});
          },
  };
  SendDone(MakeKernels(request, listener));
}

int Main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const json object = json::parse(line, nullptr, false);
    if (object == json({{"operators", true}})) {
      SendOperators();
      SendDone(absl::OkStatus());
      continue;
    }
    if (object.is_object() && object.contains("network")) {
      SendDone(AnswerNetwork(line));
      continue;
    }
    const absl::StatusOr<Request> request = ParseRequest(line);
    if (request.ok()) {
      Answer(*request);
    } else {
      SendDone(request.status());
    }
  }
  return 0;
}

}  // namespace
}  // namespace hone::oracle

int main() { return hone::oracle::Main(); }
