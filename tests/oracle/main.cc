// oracle_kernels: builds kernels for the oracle (README.md). It reads a request per line on
// standard input (request.h) and answers with lines of JSON on standard output, the last of which
// has the event "done". The request {"operators": true} lists the operator library instead.
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/operator/operator.h"
#include "nlohmann/json.hpp"
#include "tests/oracle/kernel_maker.h"
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
  Send({{"event", "operators"}, {"names", operators}});
}

void Answer(const Request& request) {
  const Listener listener = {
      .on_step = [](const std::string& step) { Send({{"event", "step"}, {"step", step}}); },
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
  const absl::Status status = MakeKernels(request, listener);
  Send({{"event", "done"}, {"ok", status.ok()}, {"detail", status.ok() ? "" : status.ToString()}});
}

int Main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (json::parse(line, nullptr, false) == json({{"operators", true}})) {
      SendOperators();
      Send({{"event", "done"}, {"ok", true}, {"detail", ""}});
      continue;
    }
    const absl::StatusOr<Request> request = ParseRequest(line);
    if (request.ok()) {
      Answer(*request);
    } else {
      Send({{"event", "done"}, {"ok", false}, {"detail", request.status().ToString()}});
    }
  }
  return 0;
}

}  // namespace
}  // namespace hone::oracle

int main() { return hone::oracle::Main(); }
