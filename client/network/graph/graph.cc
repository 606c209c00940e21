#include "client/network/graph/graph.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/operator_def.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

namespace hone::graph {

struct ConstantData::Computation {
  Digest recipe;
  int64_t size = 0;
  std::function<std::string()> compute;
  absl::once_flag once;
  std::string bytes;
};

namespace {

// Addresses cannot identify constants, because memory that was freed is used again.
int64_t NextId() {
  static std::atomic<int64_t> last = 0;
  return ++last;
}

}  // namespace

ConstantData::ConstantData(std::shared_ptr<const void> owner, absl::string_view bytes)
    : owner_(std::move(owner)), bytes_(bytes), id_(NextId()) {}

ConstantData::ConstantData(std::string bytes) : id_(NextId()) {
  const auto owner = std::make_shared<std::string>(std::move(bytes));
  bytes_ = *owner;
  owner_ = owner;
}

ConstantData ConstantData::Computed(const Digest& recipe, int64_t size,
                                    std::function<std::string()> compute) {
  ConstantData data("");
  data.computed_ = std::make_shared<Computation>();
  data.computed_->recipe = recipe;
  data.computed_->size = size;
  data.computed_->compute = std::move(compute);
  return data;
}

int64_t ConstantData::size() const {
  return computed_ == nullptr ? static_cast<int64_t>(bytes_.size()) : computed_->size;
}

absl::string_view ConstantData::bytes() const {
  if (computed_ == nullptr) return bytes_;
  absl::call_once(computed_->once, [this] {
    computed_->bytes = computed_->compute();
    computed_->compute = nullptr;  // frees what it holds
  });
  return computed_->bytes;
}

Digest ConstantData::origin() const {
  if (computed_ != nullptr) return computed_->recipe;
  return DigestBuilder().Add("constant").Add(id_).Finish();
}

namespace {

struct AttributeText {
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const { return absl::StrCat(value); }
  std::string operator()(const std::string& value) const { return absl::StrCat("\"", value, "\""); }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    return absl::StrCat("[",
                        absl::StrJoin(values, ", ",
                                      [this](std::string* out, const T& value) {
                                        absl::StrAppend(out, (*this)(value));
                                      }),
                        "]");
  }
};

std::string NameOf(const Graph& graph, ValueId id) {
  return id == kNoValue ? "" : graph.value(id).name;
}

std::string NamesOf(const Graph& graph, const std::vector<ValueId>& ids) {
  return absl::StrJoin(
      ids, ", ", [&](std::string* out, ValueId id) { absl::StrAppend(out, NameOf(graph, id)); });
}

std::string TypedName(const Graph& graph, ValueId id) {
  if (id == kNoValue) return "_";
  return absl::StrCat(graph.value(id).name, ": ", graph.value(id).type.ToText());
}

// Checks the values of a graph, and then its nodes one after the other.
class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), known_(graph.values.size()) {}

  absl::Status Run() {
    HONE_RETURN_IF_ERROR(CheckValues());
    for (const ValueId id : graph_.inputs) {
      HONE_RETURN_IF_ERROR(CheckId(id, "the graph's inputs"));
      if (graph_.IsConstant(id)) return Wrong(id, "is an input and a constant");
      HONE_RETURN_IF_ERROR(Define(id));
    }
    for (const Node& node : graph_.nodes) HONE_RETURN_IF_ERROR(CheckNode(node));
    for (const ValueId id : graph_.outputs) {
      HONE_RETURN_IF_ERROR(CheckId(id, "the graph's outputs"));
      if (!known_[id]) return Wrong(id, "is an output and is not computed");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Wrong(ValueId id, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", graph_.value(id).name, "' ", what));
  }

  absl::Status CheckId(ValueId id, absl::string_view where) const {
    if (id >= 0 && static_cast<size_t>(id) < graph_.values.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(where, ": there is no tensor ", id));
  }

  absl::Status CheckValues() {
    std::set<absl::string_view> names;
    for (ValueId id = 0; static_cast<size_t>(id) < graph_.values.size(); ++id) {
      const Value& value = graph_.value(id);
      if (value.name.empty()) return absl::InvalidArgumentError("a tensor has no name");
      if (!names.insert(value.name).second) return Wrong(id, "is defined twice");
      const absl::Status type = CheckType(value.type);
      if (!type.ok()) return Wrong(id, type.message());
      if (!value.constant) continue;
      known_[id] = true;
      const int64_t size = value.constant->size();
      if (size == value.type.bytes()) continue;
      return Wrong(id, absl::StrCat("is ", value.type.ToText(), " and has ", size,
                                    " bytes instead of ", value.type.bytes()));
    }
    return absl::OkStatus();
  }

  absl::Status Define(ValueId id) {
    if (known_[id]) return Wrong(id, "is computed twice");
    known_[id] = true;
    return absl::OkStatus();
  }

  absl::Status CheckNode(const Node& node) {
    const std::string where = absl::StrCat("node '", node.name, "' (", node.op, ")");
    for (const ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      HONE_RETURN_IF_ERROR(CheckId(id, where));
      if (!known_[id])
        return Wrong(id, absl::StrCat("is read by ", where, " before it is computed"));
    }
    HONE_ASSIGN_OR_RETURN(const Types types, InferTypes(NodeView(graph_, node)));
    if (types.size() < node.outputs.size()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": the operator has ", types.size(),
                                                     " outputs, not ", node.outputs.size()));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id == kNoValue) continue;
      HONE_RETURN_IF_ERROR(CheckId(id, where));
      HONE_RETURN_IF_ERROR(Define(id));
      if (graph_.value(id).type == types[i]) continue;
      return Wrong(id, absl::StrCat("is ", graph_.value(id).type.ToText(), ", but ", where,
                                    " computes ", types[i].ToText()));
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  std::vector<bool> known_;  // whether each value has been computed so far
};

}  // namespace

int64_t TensorType::elements() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

std::string TensorType::ToText() const {
  return absl::StrCat(ir::DTypeName(dtype), "[", absl::StrJoin(shape, ", "), "]");
}

absl::Status CheckType(const TensorType& type) {
  if (type.shape.size() > ir::kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", type.shape.size(), " dimensions; at most ", ir::kMaxRank, " are supported"));
  }
  int64_t elements = 1;  // an extent of 0 counts as 1, so that other extents are limited, too
  for (const int64_t extent : type.shape) {
    if (extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("has the negative extent ", extent, ": ", type.ToText()));
    }
    if (extent > 0 && elements > ir::kMaxElements / extent) {
      return absl::InvalidArgumentError(
          absl::StrCat("has more than ", ir::kMaxElements, " elements: ", type.ToText()));
    }
    elements *= std::max<int64_t>(extent, 1);
  }
  return absl::OkStatus();
}

ValueId Graph::AddValue(std::string name, TensorType type) {
  values.push_back({std::move(name), std::move(type), std::nullopt});
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::AddConstant(std::string name, TensorType type, ConstantData data) {
  values.push_back({std::move(name), std::move(type), std::move(data)});
  return static_cast<ValueId>(values.size()) - 1;
}

absl::Status Graph::AddNode(Node node, const std::vector<std::string>& output_names) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferTypes(NodeView(*this, node)));
  if (output_names.size() > types.size()) {
    return NodeView(*this, node)
        .InvalidError(
            absl::StrCat("the operator has ", types.size(), " outputs, not ", output_names.size()));
  }
  node.outputs.clear();
  for (size_t i = 0; i < output_names.size(); ++i) {
    node.outputs.push_back(output_names[i].empty() ? kNoValue
                                                   : AddValue(output_names[i], types[i]));
  }
  nodes.push_back(std::move(node));
  return absl::OkStatus();
}

std::vector<int> Graph::Producers() const {
  std::vector<int> producers(values.size(), -1);
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const ValueId id : nodes[n].outputs) {
      if (id != kNoValue) producers[id] = static_cast<int>(n);
    }
  }
  return producers;
}

std::vector<std::vector<int>> Graph::Consumers() const {
  std::vector<std::vector<int>> consumers(values.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const ValueId id : nodes[n].inputs) {
      if (id == kNoValue) continue;
      if (!consumers[id].empty() && consumers[id].back() == static_cast<int>(n)) continue;
      consumers[id].push_back(static_cast<int>(n));
    }
  }
  return consumers;
}

absl::Status Graph::Verify() const { return Verifier(*this).Run(); }

std::string Graph::ToText() const {
  std::string text = absl::StrCat("graph ", name, "\n");
  for (const ValueId id : inputs) absl::StrAppend(&text, "input ", TypedName(*this, id), "\n");
  for (ValueId id = 0; static_cast<size_t>(id) < values.size(); ++id) {
    if (IsConstant(id)) absl::StrAppend(&text, "constant ", TypedName(*this, id), "\n");
  }
  for (const Node& node : nodes) {
    absl::StrAppend(&text, node.name, ": ",
                    absl::StrJoin(node.outputs, ", ",
                                  [this](std::string* out, ValueId id) {
                                    absl::StrAppend(out, TypedName(*this, id));
                                  }),
                    " = ", node.op, "(", NamesOf(*this, node.inputs), ")");
    for (const auto& [key, value] : node.attributes) {
      absl::StrAppend(&text, " ", key, "=", std::visit(AttributeText(), value));
    }
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(&text, "output ", NamesOf(*this, outputs), "\n");
  return text;
}

}  // namespace hone::graph
