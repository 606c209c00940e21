#include "common/graph/group.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/graph/operator_def.h"
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
    std::string text = absl::StrCat("workload ", name, "\n");
    for (const ValueId id : inputs_) {
      const TensorType& type = graph_.value(id).type;
      absl::StrAppend(&text, "input ", names_.at(id), ": ", ir::DTypeName(type.dtype), "[",
                      type.shape.empty() ? "1" : absl::StrJoin(type.shape, ", "), "]",
                      BoundText(id), graph_.IsConstant(id) ? " constant" : "", "\n");
    }
    return absl::StrCat(text, stages_);
  }

  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }

 private:
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
    std::string stages;
    StageWriter writer(std::move(inputs), std::move(outputs), prefix, &stages);
    HONE_RETURN_IF_ERROR(def->define(view, writer));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int input = static_cast<int>(i);
      if (node.inputs[i] == kNoValue || !writer.Reads(input)) continue;
      Read(node.inputs[i]);
      if (writer.Bound(input) > 0) AddBound(node.inputs[i], writer.Bound(input));
    }
    Append(stages);
    return absl::OkStatus();
  }

  // Appends stages, and marks those that compute an output.
  void Append(absl::string_view stages) {
    std::set<std::string> outputs;
    for (const ValueId id : outputs_) {
      if (const auto name = names_.find(id); name != names_.end()) outputs.insert(name->second);
    }
    for (const absl::string_view line : absl::StrSplit(stages, '\n', absl::SkipEmpty())) {
      const absl::string_view tensors = line.substr(0, line.find('['));
      const std::vector<std::string> names =
          absl::StrSplit(tensors, absl::ByAnyChar("(), "), absl::SkipEmpty());
      const bool output = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return outputs.contains(name);
      });
      absl::StrAppend(&stages_, output ? "output " : "", line, "\n");
    }
  }

  // Returns the name of a value in the workload.
  const std::string& NameOf(ValueId id) {
    const auto [entry, is_new] = names_.emplace(id, "");
    if (is_new) entry->second = absl::StrCat("T", number_++);
    return entry->second;
  }

  // Keeps the smallest of several bounds of a value.
  void AddBound(ValueId id, int64_t bound) {
    const auto [entry, is_new] = bounds_.emplace(id, bound);
    if (!is_new) entry->second = std::min(entry->second, bound);
  }
  std::string BoundText(ValueId id) const {
    const auto bound = bounds_.find(id);
    return bound == bounds_.end() ? "" : absl::StrCat(" < ", bound->second);
  }

  // Adds a value that a node reads to the inputs, unless the group computes it.
  void Read(ValueId id) {
    if (computed_.contains(id)) return;
    if (std::find(inputs_.begin(), inputs_.end(), id) == inputs_.end()) inputs_.push_back(id);
  }

  const Graph& graph_;
  const std::vector<int>& nodes_;
  std::map<ValueId, std::string> names_;
  std::map<ValueId, int64_t> bounds_;
  std::set<ValueId> computed_, needed_;
  std::vector<ValueId> inputs_, outputs_;
  std::string stages_;
  int number_ = 0;
};

}  // namespace

absl::StatusOr<Group> MakeGroup(const Graph& graph, const std::vector<int>& nodes,
                                std::string name) {
  GroupText text(graph, nodes);
  HONE_ASSIGN_OR_RETURN(const std::string workload, text.Write(name));
  Group group{.inputs = text.inputs(), .outputs = text.outputs()};
  HONE_ASSIGN_OR_RETURN(group.workload, ir::ParseWorkload(workload));
  return group;
}

}  // namespace hone::graph
