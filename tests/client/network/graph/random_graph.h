#ifndef HONE_TESTS_CLIENT_NETWORK_GRAPH_RANDOM_GRAPH_H_
#define HONE_TESTS_CLIENT_NETWORK_GRAPH_RANDOM_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/network/graph/graph.h"
#include "common/base/rng.h"
#include "common/ir/interpreter.h"

namespace hone::graph {

// Draws small graphs of patterns that networks have. A pattern whose operators are unknown, or that
// does not fit the values drawn for it, is left out. All elements are finite.
class RandomGraph {
 public:
  RandomGraph(uint64_t seed, ir::DType dtype) : rng_(seed), dtype_(dtype) {}

  // Draws a graph of this many patterns. Its outputs are all values that no node reads, and some
  // others.
  Graph Draw(int patterns);
  // Elements for the inputs of a graph.
  std::vector<ir::Scalars> DrawInputs(const Graph& graph);

 private:
  using Shape = std::vector<int64_t>;
  using Attributes = std::map<std::string, Attribute>;

  int64_t Below(int64_t bound) { return static_cast<int64_t>(rng_.Below(bound)); }
  double DrawElement() { return static_cast<double>(Below(17) - 8) / 8; }
  ValueId Constant(const Shape& shape);
  ValueId Positive(const Shape& shape);
  ValueId Ints(const std::vector<int64_t>& values);
  ValueId AddConstant(const TensorType& type, const ir::Scalars& elements);

  // Applies an operator; kNoValue if it refuses or if an input is kNoValue.
  ValueId Apply(const std::string& op, const std::vector<ValueId>& inputs,
                const Attributes& attributes = {});
  const Shape& ShapeOf(ValueId id) const { return graph_.value(id).type.shape; }
  int64_t Rank(ValueId id) const { return static_cast<int64_t>(ShapeOf(id).size()); }
  ValueId DrawValue();
  // A constant or value that broadcasts to x.
  ValueId DrawOperand(ValueId x);

  void AddPattern();
  ValueId Unary(ValueId x);
  ValueId Binary(ValueId x);
  ValueId Product(ValueId x);
  ValueId Convolution(ValueId x);
  ValueId Shuffled(ValueId x);
  ValueId BatchNorm(ValueId x);
  ValueId PerChannel(ValueId x);
  ValueId Padded(ValueId x);
  ValueId Pool(ValueId x);
  ValueId Reshaped(ValueId x);
  ValueId Transposed(ValueId x);
  ValueId Cut(ValueId x);
  ValueId Joined(ValueId x);
  ValueId Gathered(ValueId x);
  ValueId Reduced(ValueId x);
  ValueId LayerNorm(ValueId x);
  ValueId SpelledSoftmax(ValueId x);
  ValueId Gelu(ValueId x);
  ValueId Swish(ValueId x);
  ValueId Attention(ValueId x);
  ValueId Quantized(ValueId x);
  ValueId Unchanged(ValueId x);
  ValueId OfConstants(ValueId x);
  ValueId Again(ValueId x);

  Rng rng_;
  const ir::DType dtype_;
  Graph graph_;
};

// "" if both have the same elements, up to a relative error. NaN equals NaN.
std::string Difference(const std::vector<ir::Scalars>& expected,
                       const std::vector<ir::Scalars>& actual, double tolerance = 0);

}  // namespace hone::graph

#endif  // HONE_TESTS_CLIENT_NETWORK_GRAPH_RANDOM_GRAPH_H_
