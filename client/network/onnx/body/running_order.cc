#include "client/network/onnx/body/running_order.h"

#include <map>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/supported_operators.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using Names = std::set<std::string>;

void AddNamesReadBy(const ::onnx::NodeProto& node, Names& names);

// Adds the names that a graph inside of a node reads and does not define.
void AddNamesFromOutside(const ::onnx::GraphProto& body, Names& names) {
  Names read, defined;
  for (const auto& input : body.input()) defined.insert(input.name());
  for (const auto& initializer : body.initializer()) defined.insert(initializer.name());
  for (const ::onnx::NodeProto& node : body.node()) {
    defined.insert(node.output().begin(), node.output().end());
    AddNamesReadBy(node, read);
  }
  for (const auto& output : body.output()) read.insert(output.name());
  for (const std::string& name : read) {
    if (!defined.contains(name)) names.insert(name);
  }
}

// Adds the names of a node's inputs, and those that its subgraphs read.
void AddNamesReadBy(const ::onnx::NodeProto& node, Names& names) {
  names.insert(node.input().begin(), node.input().end());
  for (const ::onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) AddNamesFromOutside(attribute.g(), names);
    for (const auto& body : attribute.graphs()) AddNamesFromOutside(body, names);
  }
  names.erase("");
}

}  // namespace

std::set<std::string> NamesReadBy(const ::onnx::NodeProto& node) {
  Names names;
  AddNamesReadBy(node, names);
  return names;
}

namespace {

class Orderer {
 public:
  Orderer(const ::onnx::GraphProto& graph, const Names& given,
          const std::function<bool(const std::string&)>& is_outside)
      : graph_(graph), given_(given), is_outside_(is_outside), needed_(graph.node_size()) {
    for (const ::onnx::NodeProto& node : graph.node()) reads_.push_back(NamesReadBy(node));
  }

  absl::StatusOr<RunningOrder> Run() {
    HONE_RETURN_IF_ERROR(FindProducers());
    HONE_RETURN_IF_ERROR(FindNeeded());
    RunningOrder order;
    HONE_ASSIGN_OR_RETURN(order.nodes, Order());
    for (const int n : order.nodes) order.read.insert(reads_[n].begin(), reads_[n].end());
    for (const auto& output : graph_.output()) order.read.insert(output.name());
    return order;
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
      if (is_outside_(name)) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", name, "', which ", reader, ", is not computed by any node"));
    }
    if (!needed_[producer->second]) open_.push_back(producer->second);
    needed_[producer->second] = true;
    return absl::OkStatus();
  }

  absl::Status FindNeeded() {
    for (const auto& output : graph_.output()) {
      HONE_RETURN_IF_ERROR(Need(output.name(), "the model outputs"));
    }
    while (!open_.empty()) {
      const int node = open_.back();
      open_.pop_back();
      for (const std::string& name : reads_[node]) {
        HONE_RETURN_IF_ERROR(Need(name, absl::StrCat(Describe(graph_.node(node)), " reads")));
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
      for (const std::string& name : reads_[n]) {
        const auto producer = producers_.find(name);
        if (producer == producers_.end()) continue;
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
      for (const std::string& name : reads_[node]) {
        const auto producer = producers_.find(name);
        if (producer == producers_.end() || waits_for[producer->second] == 0) continue;
        node = producer->second;
        break;
      }
    }
    return node;
  }

  const ::onnx::GraphProto& graph_;
  const Names& given_;
  const std::function<bool(const std::string&)>& is_outside_;
  std::vector<Names> reads_;  // by node
  std::map<std::string, int> producers_;
  std::vector<bool> needed_;
  std::vector<int> open_;  // needed nodes whose inputs are not marked yet
};

}  // namespace

std::string Describe(const ::onnx::NodeProto& node) {
  return absl::StrCat("node '", node.name(), "' (", OperatorName(node), ")");
}

absl::StatusOr<RunningOrder> FindRunningOrder(
    const ::onnx::GraphProto& graph, const Names& given,
    const std::function<bool(const std::string&)>& is_outside) {
  return Orderer(graph, given, is_outside).Run();
}

}  // namespace hone::onnx
