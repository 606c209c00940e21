#include "client/network/onnx/running_order.h"

#include <functional>
#include <map>
#include <queue>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

class Orderer {
 public:
  Orderer(const ::onnx::GraphProto& graph, const std::set<std::string>& given)
      : graph_(graph), given_(given) {}

  absl::StatusOr<std::vector<int>> Run() {
    HONE_RETURN_IF_ERROR(FindProducers());
    HONE_RETURN_IF_ERROR(FindNeeded());
    return Order();
  }

 private:
  absl::Status FindProducers() {
    for (int n = 0; n < graph_.node_size(); ++n) {
      for (const std::string& name : graph_.node(n).output()) {
        if (name.empty()) continue;
        if (!given_.contains(name) && producers_.emplace(name, n).second) continue;
        return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "', which ",
                                                       Describe(graph_.node(n)),
                                                       " computes, is defined twice"));
      }
    }
    return absl::OkStatus();
  }

  // Marks the node that computes a tensor, if it is not given.
  absl::Status Need(const std::string& name, absl::string_view reader) {
    if (given_.contains(name)) return absl::OkStatus();
    const auto producer = producers_.find(name);
    if (producer == producers_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", name, "', which ", reader, ", is not computed by any node"));
    }
    if (!needed_[producer->second]) open_.push_back(producer->second);
    needed_[producer->second] = true;
    return absl::OkStatus();
  }

  absl::Status FindNeeded() {
    needed_.resize(graph_.node_size());
    for (const auto& output : graph_.output()) {
      HONE_RETURN_IF_ERROR(Need(output.name(), "the model outputs"));
    }
    while (!open_.empty()) {
      const ::onnx::NodeProto& node = graph_.node(open_.back());
      open_.pop_back();
      for (const std::string& name : node.input()) {
        if (name.empty()) continue;
        HONE_RETURN_IF_ERROR(Need(name, absl::StrCat(Describe(node), " reads")));
      }
    }
    return absl::OkStatus();
  }

  // Always takes the first node of the model that can run.
  absl::StatusOr<std::vector<int>> Order() {
    std::vector<int> waits_for(graph_.node_size());
    std::vector<std::vector<int>> readers(graph_.node_size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    int count = 0;
    for (int n = 0; n < graph_.node_size(); ++n) {
      if (!needed_[n]) continue;
      ++count;
      for (const std::string& name : graph_.node(n).input()) {
        const auto producer = producers_.find(name);
        if (name.empty() || producer == producers_.end()) continue;
        readers[producer->second].push_back(n);
        ++waits_for[n];
      }
      if (waits_for[n] == 0) ready.push(n);
    }
    std::vector<int> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const int reader : readers[order.back()]) {
        if (--waits_for[reader] == 0) ready.push(reader);
      }
    }
    if (static_cast<int>(order.size()) == count) return order;
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(graph_.node(NodeOfCycle(waits_for))), " depends on its own result"));
  }

  // Goes back from a node that never became ready. After as many steps as there are nodes, it is in
  // a cycle.
  int NodeOfCycle(const std::vector<int>& waits_for) const {
    int node = 0;
    while (waits_for[node] == 0) ++node;
    for (int step = 0; step < graph_.node_size(); ++step) {
      for (const std::string& name : graph_.node(node).input()) {
        const auto producer = producers_.find(name);
        if (producer == producers_.end() || waits_for[producer->second] == 0) continue;
        node = producer->second;
        break;
      }
    }
    return node;
  }

  const ::onnx::GraphProto& graph_;
  const std::set<std::string>& given_;
  std::map<std::string, int> producers_;
  std::vector<bool> needed_;
  std::vector<int> open_;  // needed nodes whose inputs are not marked yet
};

}  // namespace

std::string Describe(const ::onnx::NodeProto& node) {
  return absl::StrCat("node '", node.name(), "' (", node.op_type(), ")");
}

absl::StatusOr<std::vector<int>> RunningOrder(const ::onnx::GraphProto& graph,
                                              const std::set<std::string>& given) {
  return Orderer(graph, given).Run();
}

}  // namespace hone::onnx
