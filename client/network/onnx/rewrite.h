#ifndef HONE_CLIENT_NETWORK_ONNX_REWRITE_H_
#define HONE_CLIENT_NETWORK_ONNX_REWRITE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/graph_builder.h"
#include "client/network/onnx/opset.h"
#include "common/base/status_macros.h"

namespace hone::onnx {

// A node while a rule rewrites it. Its first input is present.
class Rewrite {
 public:
  Rewrite(VersionedNode& versioned, GraphBuilder& builder)
      : versioned_(versioned), builder_(builder) {}

  graph::Node& node() { return versioned_.node; }
  graph::NodeView view() const { return graph::NodeView(builder_.graph(), versioned_.node); }
  int64_t all_outputs() const { return versioned_.all_outputs; }

  std::optional<graph::Attribute> Take(const std::string& name) {
    auto taken = node().attributes.extract(name);
    if (taken.empty()) return std::nullopt;
    return std::move(taken.mapped());
  }
  void SetInput(size_t index, graph::ValueId value) {
    if (node().inputs.size() <= index) node().inputs.resize(index + 1, graph::kNoValue);
    node().inputs[index] = value;
  }
  // Converts a list attribute to an input.
  absl::Status ListToInput(const std::string& name, size_t index) {
    const std::optional<graph::Attribute> value = Take(name);
    if (!value) return absl::OkStatus();
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&*value)) {
      SetInput(index, builder_.AddInts(TensorName(name), *ints));
    } else if (const auto* one = std::get_if<int64_t>(&*value)) {
      SetInput(index, builder_.AddInts(TensorName(name), {*one}));
    } else if (const auto* floats = std::get_if<std::vector<double>>(&*value)) {
      SetInput(index, builder_.AddFloats(TensorName(name), *floats));
    } else {
      return view().InvalidError(absl::StrCat("attribute '", name, "' must be a list of numbers"));
    }
    return absl::OkStatus();
  }
  // Converts a number attribute to a scalar input with the element type of the first input.
  absl::Status NumberToInput(const std::string& name, size_t index) {
    if (!view().HasAttribute(name)) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const double number, view().Float(name, 0));
    Take(name);
    SetInput(index, builder_.AddScalar(TensorName(name), view().Type(0).dtype, number));
    return absl::OkStatus();
  }
  // Adds a node that applies `op` to values, and returns its result.
  absl::StatusOr<graph::ValueId> Apply(absl::string_view op, std::vector<graph::ValueId> inputs,
                                       std::map<std::string, graph::Attribute> attributes = {}) {
    graph::Node added{builder_.FreshNodeName(absl::StrCat(node().name, "_", op)),
                      std::string(op),
                      std::move(inputs),
                      {},
                      std::move(attributes)};
    const std::string name = builder_.FreshTensorName(TensorName(op));
    HONE_ASSIGN_OR_RETURN(const std::vector<graph::ValueId> results,
                          builder_.Add(std::move(added), {name}));
    return results[0];
  }
  graph::ValueId Ints(absl::string_view name, const std::vector<int64_t>& elements) {
    return builder_.AddInts(TensorName(name), elements);
  }
  // A scalar of the element type of another value.
  graph::ValueId Scalar(absl::string_view name, graph::ValueId like, double value) {
    return builder_.AddScalar(TensorName(name), builder_.graph().value(like).type.dtype, value);
  }

 private:
  std::string TensorName(absl::string_view suffix) const {
    return absl::StrCat(versioned_.node.name, "_", suffix);
  }

  VersionedNode& versioned_;
  GraphBuilder& builder_;
};

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_REWRITE_H_
