#include "common/graph/pass/padded_image.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/node_view.h"
#include "common/graph/op/convolution.h"
#include "common/graph/op/quantized.h"
#include "common/graph/pass/edit.h"

namespace hone::graph {
namespace {

constexpr int64_t kMaxChannels = 4;
constexpr int64_t kTapsTogether = 4;

// Returns the QuantizeLinear of an input of the graph that nothing but the convolution needs; -1 if
// there is none. Its zero point must be that of the DequantizeLinear, because padding is zero.
int QuantizerOf(const Graph& graph, const Node& convolution, ValueId bytes) {
  const int dequantize = PrivateProducer(graph, convolution.inputs[0]);
  const int quantize = dequantize < 0 ? -1 : PrivateProducer(graph, bytes);
  if (quantize < 0 || graph.nodes[quantize].op != "QuantizeLinear") return -1;
  const Node& node = graph.nodes[quantize];
  if (std::ranges::count(graph.inputs, node.inputs[0]) == 0) return -1;
  const NodeView from(graph, node), to(graph, graph.nodes[dequantize]);
  if (from.Type(1).elements() != 1) return -1;
  if (IsZero(from, 2) && IsZero(to, 2)) return quantize;
  const bool equal = from.Has(2) && to.Has(2) && from.IsConstant(2) && to.IsConstant(2) &&
                     Reals(graph, node.inputs[2]) == Reals(graph, to.node().inputs[2]);
  return equal ? quantize : -1;
}

// Appends a node with one result.
absl::StatusOr<ValueId> Append(Graph& graph, Node node, const std::string& name) {
  node.name = FreshName(graph, name);
  node.outputs.clear();
  HONE_RETURN_IF_ERROR(graph.AddNode(node, {node.name}));
  return graph.nodes.back().outputs[0];
}

// Appends taps to the last dimension of kernels, which are zero.
ValueId WithTaps(Graph& graph, ValueId weights, int64_t more) {
  TensorType type = graph.value(weights).type;
  const std::vector<double> old = Reals(graph, weights);
  const auto taps = static_cast<size_t>(type.shape.back());
  type.shape.back() += more;
  std::vector<double> elements;
  for (size_t i = 0; i < old.size(); ++i) {
    elements.push_back(old[i]);
    if (i % taps == taps - 1) elements.insert(elements.end(), more, 0);
  }
  return AddConstant(graph, absl::StrCat(graph.value(weights).name, ".taps"), type, elements);
}

}  // namespace

absl::StatusOr<std::optional<PaddedImage>> PadImage(Graph& graph, const Node& convolution,
                                                    ValueId bytes, ValueId weights) {
  const int quantize = QuantizerOf(graph, convolution, bytes);
  if (quantize < 0) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(const Convolution c, Convolution::Of(NodeView(graph, convolution), 0, 1));
  if (c.channels_last || c.groups != 1 || c.group_inputs > kMaxChannels) return std::nullopt;
  std::vector<int64_t> begins = {0, 0}, ends = {0, 0};
  for (const Window& window : c.windows) {
    begins.push_back(window.begin);
    ends.push_back(window.end);
  }
  PaddedImage padded{convolution, weights};
  const Window& last = c.windows.back();
  const int64_t rest = last.kernel % kTapsTogether;
  if (rest != 0 && c.group_inputs != kMaxChannels && last.kernel > 1 && last.dilation == 1) {
    padded.weights = WithTaps(graph, weights, kTapsTogether - rest);
    ends.back() += kTapsTogether - rest;
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  if (std::ranges::all_of(begins, [](int64_t pad) { return pad == 0; })) return std::nullopt;

  Node quantizer = graph.nodes[quantize];
  const Node pad{.op = "Pad",
                 .inputs = {quantizer.inputs[0],
                            AddInts(graph, absl::StrCat(convolution.name, ".pads"), begins)}};
  HONE_ASSIGN_OR_RETURN(quantizer.inputs[0],
                        Append(graph, pad, absl::StrCat(convolution.name, ".Pad")));
  HONE_ASSIGN_OR_RETURN(
      padded.convolution.inputs[0],
      Append(graph, quantizer, absl::StrCat(convolution.name, ".QuantizeLinear")));
  for (const char* attribute : {"auto_pad", "kernel_shape", "pads"}) {
    padded.convolution.attributes.erase(attribute);
  }
  return padded;
}

}  // namespace hone::graph
