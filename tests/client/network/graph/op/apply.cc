#include "tests/client/network/graph/op/apply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/group.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "common/base/status_macros.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

absl::StatusOr<Graph> GraphOf(const std::string& op, const std::vector<Given>& inputs,
                              std::map<std::string, Attribute> attributes, int outputs) {
  Graph graph;
  Node node{"n", op, {}, {}, std::move(attributes)};
  for (const Given& given : inputs) {
    if (!given.type) {
      node.inputs.push_back(kNoValue);
      continue;
    }
    const std::string name = absl::StrCat("x", graph.values.size());
    if (given.constant) {
      node.inputs.push_back(
          graph.AddConstant(name, *given.type, ConstantData(Encode(*given.type, given.elements))));
    } else {
      node.inputs.push_back(graph.AddValue(name, *given.type));
      graph.inputs.push_back(node.inputs.back());
    }
  }
  std::vector<std::string> names;
  for (int i = 0; i < outputs; ++i) names.push_back(absl::StrCat("y", i));
  HONE_RETURN_IF_ERROR(graph.AddNode(std::move(node), names));
  graph.outputs = graph.nodes[0].outputs;
  HONE_RETURN_IF_ERROR(graph.Verify());
  return graph;
}

}  // namespace

absl::StatusOr<std::vector<ir::Scalars>> Apply(const std::string& op,
                                               const std::vector<Given>& inputs,
                                               std::map<std::string, Attribute> attributes,
                                               int outputs) {
  HONE_ASSIGN_OR_RETURN(const Graph graph, GraphOf(op, inputs, std::move(attributes), outputs));
  std::vector<ir::Scalars> elements;
  for (const Given& given : inputs) {
    if (given.type && !given.constant) elements.push_back(given.elements);
  }
  return Interpret(graph, elements);
}

absl::StatusOr<TensorType> TypeOf(const std::string& op, const std::vector<Given>& inputs,
                                  std::map<std::string, Attribute> attributes) {
  HONE_ASSIGN_OR_RETURN(const Graph graph, GraphOf(op, inputs, std::move(attributes), 1));
  return graph.value(graph.outputs[0]).type;
}

std::string TextOf(const std::string& op, const std::vector<Given>& inputs,
                   std::map<std::string, Attribute> attributes) {
  const absl::StatusOr<Graph> graph = GraphOf(op, inputs, std::move(attributes), 1);
  if (!graph.ok()) return graph.status().ToString();
  const absl::StatusOr<Group> group = MakeGroup(*graph, {0}, "node");
  return group.ok() ? group->workload.ToText() : group.status().ToString();
}

Given Floats(std::vector<int64_t> shape, std::mt19937& random, bool constant) {
  Given given{TensorType{ir::DType::kF32, std::move(shape)}, {}, constant};
  std::uniform_real_distribution<float> draw(-2, 2);
  for (int64_t i = 0; i < given.type->elements(); ++i)
    given.elements.emplace_back(double{draw(random)});
  return given;
}

Given Wholes(ir::DType dtype, std::vector<int64_t> shape, int64_t least, int64_t most,
             std::mt19937& random, bool constant) {
  Given given{TensorType{dtype, std::move(shape)}, {}, constant};
  std::uniform_int_distribution<int64_t> draw(least, most);
  for (int64_t i = 0; i < given.type->elements(); ++i) given.elements.emplace_back(draw(random));
  return given;
}

Given List(const std::vector<int64_t>& numbers) {
  return {TensorType{ir::DType::kI64, {static_cast<int64_t>(numbers.size())}},
          ir::Scalars(numbers.begin(), numbers.end()), true};
}

Given Number(float number) { return {TensorType{ir::DType::kF32, {}}, {double{number}}, true}; }

void ExpectNear(const absl::StatusOr<std::vector<ir::Scalars>>& actual,
                const std::vector<double>& expected, int output) {
  ASSERT_THAT(actual, IsOk());
  const ir::Scalars& elements = (*actual)[output];
  ASSERT_EQ(elements.size(), expected.size());
  double largest = 0;
  for (const double element : expected) {
    if (std::isfinite(element)) largest = std::max(largest, std::fabs(element));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(elements[i].real())) continue;
    if (elements[i].real() == expected[i]) continue;
    ASSERT_NEAR(elements[i].real(), expected[i], elements[i].is_whole() ? 0 : 1e-5 * largest)
        << "element " << i;
  }
}

}  // namespace hone::graph
