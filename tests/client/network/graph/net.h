#ifndef HONE_TESTS_CLIENT_NETWORK_GRAPH_NET_H_
#define HONE_TESTS_CLIENT_NETWORK_GRAPH_NET_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/node_view.h"
#include "tests/status.h"

namespace hone::graph {

// Builds a graph, with names of its own. Tensors are of f32 if nothing else is said.
class Net {
 public:
  ValueId Input(std::vector<int64_t> shape, ir::DType dtype = ir::DType::kF32) {
    graph.inputs.push_back(graph.AddValue(Fresh("x"), {dtype, std::move(shape)}));
    return graph.inputs.back();
  }
  // A constant with these elements, or with 0.5 everywhere.
  ValueId Weights(std::vector<int64_t> shape, std::vector<double> elements = {},
                  ir::DType dtype = ir::DType::kF32) {
    const TensorType type{dtype, std::move(shape)};
    if (elements.empty()) elements.assign(type.elements(), 0.5);
    return Constant(type, {elements.begin(), elements.end()});
  }
  ValueId Ints(const std::vector<int64_t>& values) {
    return Constant({ir::DType::kI64, {static_cast<int64_t>(values.size())}},
                    {values.begin(), values.end()});
  }
  // A constant of bytes, or of u8 or i32 if asked for.
  ValueId Bytes(std::vector<int64_t> shape, std::vector<int64_t> elements,
                ir::DType dtype = ir::DType::kI8) {
    return Constant({dtype, std::move(shape)}, {elements.begin(), elements.end()});
  }
  // Quantizes to u8 and back.
  ValueId Quantized(ValueId x, double scale, int64_t zero_point) {
    const ValueId step = Weights({}, {scale}), zero = Bytes({}, {zero_point}, ir::DType::kU8);
    return Apply("DequantizeLinear", {Apply("QuantizeLinear", {x, step, zero}), step, zero});
  }
  // Applies an operator with one result.
  ValueId Apply(const std::string& op, std::vector<ValueId> inputs,
                std::map<std::string, Attribute> attributes = {}) {
    const absl::Status status =
        graph.AddNode({Fresh("n"), op, std::move(inputs), {}, std::move(attributes)}, {Fresh("v")});
    EXPECT_THAT(status, IsOk());
    return status.ok() ? graph.nodes.back().outputs[0] : kNoValue;
  }
  // A convolution that keeps the size, with a bias.
  ValueId Conv(ValueId x, int64_t channels, int64_t kernel = 1) {
    return Apply(
        "Conv",
        {x, Weights({channels, graph.value(x).type.shape[1], kernel, kernel}), Weights({channels})},
        {{"pads", std::vector<int64_t>(4, kernel / 2)}});
  }
  // The operators of the nodes.
  std::vector<std::string> Operators() const {
    std::vector<std::string> operators;
    for (const Node& node : graph.nodes) operators.push_back(node.op);
    return operators;
  }

  Graph graph;

 private:
  ValueId Constant(const TensorType& type, const std::vector<ir::Scalar>& elements) {
    return graph.AddConstant(Fresh("c"), type, ConstantData(Encode(type, elements)));
  }
  std::string Fresh(const std::string& letter) { return absl::StrCat(letter, number_++); }
  int number_ = 0;
};

}  // namespace hone::graph

#endif  // HONE_TESTS_CLIENT_NETWORK_GRAPH_NET_H_
