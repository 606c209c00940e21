#ifndef HONE_CLIENT_NETWORK_ONNX_REWRITE_H_
#define HONE_CLIENT_NETWORK_ONNX_REWRITE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/onnx/compose/composer.h"
#include "client/network/onnx/opset.h"

namespace hone::onnx {

// A node of a model while it is converted to the operators of graphs: it is changed, or other nodes
// take its place. The nodes and constants that this adds have names that begin with that of the
// node.
class Rewrite : public Composer {
 public:
  Rewrite(VersionedNode& versioned, GraphBuilder& builder)
      : Composer(builder, versioned.node, versioned.opset, versioned.outputs),
        versioned_(versioned) {}

  graph::Node& node() { return versioned_.node; }
  int64_t all_outputs() const { return versioned_.all_outputs; }

  std::optional<graph::Attribute> Take(const std::string& name);
  void SetInput(size_t index, graph::ValueId value);
  // Converts a list attribute to an input.
  absl::Status ListToInput(const std::string& name, size_t index);
  // Converts a number attribute to a scalar input with the element type of the first input.
  absl::Status NumberToInput(const std::string& name, size_t index);

  // More constants.
  graph::ValueId Whole(absl::string_view name, int64_t value) {
    return builder_.AddScalar(TensorName(name), ir::DType::kI64, static_cast<double>(value));
  }
  using Composer::Constant;
  graph::ValueId Constant(absl::string_view name, graph::TensorType type,
                          graph::ConstantData data) {
    return builder_.graph().AddConstant(builder_.FreshTensorName(TensorName(name)), std::move(type),
                                        std::move(data));
  }
  // See GraphBuilder::AddFilled(). The message of an error names the node.
  absl::StatusOr<graph::ValueId> Filled(absl::string_view name, graph::TensorType type,
                                        const ir::Scalar& element);
  // The elements of a constant. REQUIRES: it is one.
  const graph::ConstantData& ElementsOf(graph::ValueId id) const {
    return *builder_.graph().value(id).constant;
  }

 private:
  VersionedNode& versioned_;
};

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_REWRITE_H_
