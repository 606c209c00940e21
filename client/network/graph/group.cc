#include "client/network/graph/group.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/network/graph/operator_def.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"

namespace hone::graph {
namespace {

// Writes the text of a group's workload.
class GroupText {
 public:
  GroupText(const Graph& graph, const std::vector<int>& nodes) : graph_(graph), nodes_(nodes) {}

  absl::StatusOr<std::string> Write(absl::string_view name) {
    FindOutputs();
    for (const int n : nodes_) HONE_RETURN_IF_ERROR(WriteNode(graph_.nodes[n]));
    RemoveDead();
    SeparateOutputs();
    HONE_RETURN_IF_ERROR(FindInputs());
    std::string text = absl::StrCat("workload ", name, "\n");
    for (const ValueId id : inputs_) {
      const TensorType& type = graph_.value(id).type;
      absl::StrAppend(&text, "input ", names_.at(id), ": ", ir::DTypeName(type.dtype), "[",
                      type.shape.empty() ? "1" : absl::StrJoin(type.shape, ", "), "]",
                      BoundText(id), graph_.IsConstant(id) ? " constant" : "", "\n");
    }
    for (const Written& node : written_) {
      for (const StageText& stage : node.stages) {
        absl::StrAppend(&text, IsOutput(stage.tensors[0]) ? "output " : "", stage.ToText());
      }
    }
    return text;
  }

  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }

 private:
  // The stages of a node, and the bounds of its inputs that are indices (StageWriter::SetBound).
  struct Written {
    const Node* node;
    std::vector<StageText> stages;
    std::map<ValueId, int64_t> bounds;
  };

  // A value of the group is an output if the graph outputs it or a node outside reads it.
  void FindOutputs() {
    const std::vector<std::vector<int>> consumers = graph_.Consumers();
    const std::set<int> inside(nodes_.begin(), nodes_.end());
    for (const int n : nodes_) {
      for (const ValueId id : graph_.nodes[n].outputs) {
        if (id == kNoValue) continue;
        if (!consumers[id].empty()) needed_.insert(id);
        const bool outside = std::any_of(consumers[id].begin(), consumers[id].end(),
                                         [&](int consumer) { return !inside.contains(consumer); });
        if (outside || std::count(graph_.outputs.begin(), graph_.outputs.end(), id) > 0) {
          outputs_.push_back(id);
          needed_.insert(id);
        }
      }
    }
  }

  absl::Status WriteNode(const Node& node) {
    const NodeView view(graph_, node);
    const OperatorDef* const def = FindOperator(node.op);
    if (def == nullptr) return InferTypes(view).status();  // the error for an unknown operator
    if (def->define == nullptr) {
      return view.UnimplementedError("its inputs must be constant");
    }
    std::vector<StageWriter::Named> inputs, outputs;
    for (const ValueId id : node.inputs) {
      inputs.push_back(id == kNoValue ? StageWriter::Named()
                                      : StageWriter::Named{NameOf(id), graph_.value(id).type});
    }
    const std::string prefix = absl::StrCat("T", number_++, "_");
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (!needed_.contains(id)) {  // it is absent, or no node reads it
        outputs.emplace_back();
        continue;
      }
      if (graph_.value(id).type.elements() == 0) {
        return view.UnimplementedError("its result is empty; a workload has no empty tensors");
      }
      computed_.insert(id);
      outputs.push_back({NameOf(id), graph_.value(id).type});
    }
    Written& written = written_.emplace_back(Written{.node = &node});
    StageWriter writer(std::move(inputs), std::move(outputs), prefix, &written.stages);
    HONE_RETURN_IF_ERROR(def->define(view, writer));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int64_t bound = node.inputs[i] == kNoValue ? 0 : writer.Bound(static_cast<int>(i));
      if (bound > 0) AddBound(written.bounds, node.inputs[i], bound);
    }
    return absl::OkStatus();
  }

  // Removes the stages that no output of the group needs. They exist because an operator computes
  // all of its results in common stages, or because a node that reads a value does not need it.
  void RemoveDead() {
    std::set<std::string> live;
    for (const ValueId id : outputs_) live.insert(names_.at(id));
    for (auto node = written_.rbegin(); node != written_.rend(); ++node) {
      std::vector<StageText> kept;
      for (auto stage = node->stages.rbegin(); stage != node->stages.rend(); ++stage) {
        if (std::none_of(stage->tensors.begin(), stage->tensors.end(),
                         [&](const std::string& tensor) { return live.contains(tensor); })) {
          continue;
        }
        for (std::string& read : stage->Reads()) live.insert(std::move(read));
        kept.push_back(std::move(*stage));
      }
      node->stages.assign(std::make_move_iterator(kept.rbegin()),
                          std::make_move_iterator(kept.rend()));
    }
  }

  // In a workload, all tensors of a stage are outputs or none is. If only one of two is an output
  // of the group, a stage of its own copies it.
  void SeparateOutputs() {
    for (Written& node : written_) {
      for (size_t s = 0; s < node.stages.size(); ++s) {
        std::vector<std::string>& tensors = node.stages[s].tensors;
        if (tensors.size() != 2 || IsOutput(tensors[0]) == IsOutput(tensors[1])) continue;
        std::string& tensor = tensors[IsOutput(tensors[0]) ? 0 : 1];
        const std::string output = std::exchange(tensor, absl::StrCat(tensor, "_computed"));
        StageText copy = node.stages[s];
        copy.value = absl::StrCat(tensor, "[", absl::StrJoin(copy.axes, ", "), "]");
        copy.tensors = {output};
        node.stages.insert(node.stages.begin() + static_cast<int64_t>(s) + 1, std::move(copy));
      }
    }
  }

  // Finds the values that stages read and the group does not compute, in the order of the nodes'
  // inputs. Unimplemented: one of them is empty.
  absl::Status FindInputs() {
    for (const Written& written : written_) {
      std::set<std::string> reads;
      for (const StageText& stage : written.stages) {
        for (std::string& read : stage.Reads()) reads.insert(std::move(read));
      }
      for (const ValueId id : written.node->inputs) {
        if (id == kNoValue || !reads.contains(names_.at(id))) continue;
        if (const auto bound = written.bounds.find(id); bound != written.bounds.end()) {
          AddBound(bounds_, id, bound->second);
        }
        if (computed_.contains(id)) continue;
        if (graph_.value(id).type.elements() == 0) {
          return NodeView(graph_, *written.node)
              .UnimplementedError(absl::StrCat("computes elements from '", graph_.value(id).name,
                                               "', which is ", graph_.value(id).type.ToText(),
                                               " and has none; this is not supported"));
        }
        if (std::find(inputs_.begin(), inputs_.end(), id) == inputs_.end()) inputs_.push_back(id);
      }
    }
    return absl::OkStatus();
  }

  bool IsOutput(const std::string& tensor) const {
    return std::any_of(outputs_.begin(), outputs_.end(),
                       [&](ValueId id) { return names_.at(id) == tensor; });
  }

  // Returns the name of a value in the workload.
  const std::string& NameOf(ValueId id) {
    const auto [entry, is_new] = names_.emplace(id, "");
    if (is_new) entry->second = absl::StrCat("T", number_++);
    return entry->second;
  }

  // Keeps the smallest of several bounds of a value.
  static void AddBound(std::map<ValueId, int64_t>& bounds, ValueId id, int64_t bound) {
    const auto [entry, is_new] = bounds.emplace(id, bound);
    if (!is_new) entry->second = std::min(entry->second, bound);
  }
  std::string BoundText(ValueId id) const {
    const auto bound = bounds_.find(id);
    return bound == bounds_.end() ? "" : absl::StrCat(" < ", bound->second);
  }

  const Graph& graph_;
  const std::vector<int>& nodes_;
  std::map<ValueId, std::string> names_;
  std::map<ValueId, int64_t> bounds_;
  std::set<ValueId> computed_, needed_;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<Written> written_;
  int number_ = 0;
};

}  // namespace

absl::StatusOr<Group> MakeGroup(const Graph& graph, const std::vector<int>& nodes,
                                std::string name) {
  GroupText text(graph, nodes);
  HONE_ASSIGN_OR_RETURN(const std::string workload, text.Write(name));
  Group group{.inputs = text.inputs(), .outputs = text.outputs()};
  absl::StatusOr<ir::Workload> parsed = ir::ParseWorkload(workload);
  if (!parsed.ok() && nodes.size() == 1) {  // name the node, because the user sees this
    return NodeView(graph, graph.nodes[nodes[0]])
        .InvalidError(absl::StrCat("cannot be computed: ", parsed.status().message()));
  }
  HONE_ASSIGN_OR_RETURN(group.workload, std::move(parsed));
  return group;
}

absl::StatusOr<Graph> AloneInGraph(const Graph& graph, Node node) {
  Graph alone;
  std::map<ValueId, ValueId> added;
  for (ValueId& id : node.inputs) {
    if (id == kNoValue) continue;
    const auto [entry, is_new] = added.emplace(id, kNoValue);
    if (is_new) {
      const Value& value = graph.value(id);
      entry->second = value.constant ? alone.AddConstant(value.name, value.type, *value.constant)
                                     : alone.AddValue(value.name, value.type);
    }
    id = entry->second;
  }
  std::vector<std::string> names;
  for (const ValueId id : node.outputs) {
    names.push_back(id == kNoValue ? "" : absl::StrCat("y", names.size()));
  }
  HONE_RETURN_IF_ERROR(alone.AddNode(std::move(node), names));
  alone.outputs = alone.nodes[0].outputs;
  std::erase(alone.outputs, kNoValue);
  return alone;
}

}  // namespace hone::graph
