#include "client/network/graph/pass/padded_image.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/convolution.h"
#include "client/network/graph/op/quantized.h"
#include "client/network/graph/pass/edit.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

constexpr int64_t kMaxChannels = 4;
constexpr int64_t kTapsTogether = 4;

// Returns the node that quantizes an input of the graph for this convolution alone, or -1. Its zero
// point is that of the DequantizeLinear, because padding must stand for zero.
int QuantizerOf(const Graph& graph, const Node& convolution, ValueId bytes) {
  const int dequantize = PrivateProducer(graph, convolution.inputs[0]);
  const int quantize = dequantize < 0 ? -1 : PrivateProducer(graph, bytes);
  if (quantize < 0 || graph.nodes[quantize].op != "QuantizeLinear") return -1;
  const Node& node = graph.nodes[quantize];
  if (std::ranges::count(graph.inputs, node.inputs[0]) == 0) return -1;
  const NodeView from(graph, node), to(graph, graph.nodes[dequantize]);
  return from.Type(1).elements() == 1 && HaveSameZeroPoint(from, to) ? quantize : -1;
}

// Appends a node with one result.
absl::StatusOr<ValueId> Append(Graph& graph, Node node, const std::string& name) {
  node.name = FreshName(graph, name);
  node.outputs.clear();
  HONE_RETURN_IF_ERROR(graph.AddNode(node, {node.name}));
  return graph.nodes.back().outputs[0];
}

// Appends a Pad of an image by the padding of a convolution and, at the end of the last dimension,
// by `more`. `value`: of the padding; kNoValue: 0. Removes the padding from the convolution.
absl::StatusOr<ValueId> AppendPad(Graph& graph, Node& convolution, ValueId image,
                                  const Convolution& c, int64_t more, ValueId value) {
  std::vector<int64_t> begins = {0, 0}, ends = {0, 0};
  for (const Window& window : c.windows) {
    begins.push_back(window.begin);
    ends.push_back(window.end);
  }
  ends.back() += more;
  begins.insert(begins.end(), ends.begin(), ends.end());
  Node pad{.op = "Pad",
           .inputs = {image, AddInts(graph, absl::StrCat(convolution.name, ".pads"), begins)}};
  if (value != kNoValue) pad.inputs.push_back(value);
  for (const char* attribute : {"auto_pad", "kernel_shape", "pads"}) {
    convolution.attributes.erase(attribute);
  }
  return Append(graph, pad, absl::StrCat(convolution.name, ".Pad"));
}

bool IsPadded(const Convolution& c) {
  return std::ranges::any_of(c.windows, [](const Window& w) { return w.begin > 0 || w.end > 0; });
}

// Whether reading a shift for each position takes longer than copying the image and multiplying its
// padding. On Zen 5, a byte of the shifts took as long as 64 products.
bool PaysToPad(const Graph& graph, const Convolution& c, ValueId bytes) {
  constexpr double kBytesOfShift = 4, kProducts = 64, kBytesOfImage = 2;
  double positions = 1, inside = 1, all = 1;
  for (const Window& window : c.windows) {
    int64_t taps = 0;
    for (int64_t o = 0; o < window.outputs; ++o) {
      for (int64_t t = 0; t < window.kernel; ++t) taps += window.IsInside(o, t);
    }
    positions *= static_cast<double>(window.outputs);
    inside *= static_cast<double>(taps);
    all *= static_cast<double>(window.outputs * window.kernel);
  }
  const auto samples = static_cast<double>(c.shape[0]);
  const auto channels = static_cast<double>(c.groups * c.group_outputs);
  const double products = (all - inside) * samples * channels * static_cast<double>(c.group_inputs);
  const auto image = static_cast<double>(graph.value(bytes).type.bytes());
  return kBytesOfShift * samples * positions * channels >
         image / kBytesOfImage + products / kProducts;
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

absl::StatusOr<std::optional<PaddedImage>> PadInput(Graph& graph, const Node& convolution,
                                                    ValueId bytes, ValueId weights) {
  const int quantize = QuantizerOf(graph, convolution, bytes);
  if (quantize < 0) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(const Convolution c, Convolution::Of(NodeView(graph, convolution), 0, 1));
  if (c.channels_last || c.groups != 1 || c.group_inputs > kMaxChannels) return std::nullopt;
  PaddedImage padded{convolution, weights};
  const Window& last = c.windows.back();
  const int64_t rest = last.kernel % kTapsTogether;
  int64_t more = 0;
  if (rest != 0 && c.group_inputs != kMaxChannels && last.kernel > 1 && last.dilation == 1) {
    more = kTapsTogether - rest;
    padded.weights = WithTaps(graph, weights, more);
  }
  if (!IsPadded(c) && more == 0) return std::nullopt;
  Node quantizer = graph.nodes[quantize];
  HONE_ASSIGN_OR_RETURN(quantizer.inputs[0], AppendPad(graph, padded.convolution,
                                                       quantizer.inputs[0], c, more, kNoValue));
  HONE_ASSIGN_OR_RETURN(
      padded.convolution.inputs[0],
      Append(graph, quantizer, absl::StrCat(convolution.name, ".QuantizeLinear")));
  return padded;
}

absl::StatusOr<std::optional<PaddedImage>> PadBytes(Graph& graph, const Node& convolution,
                                                    ValueId bytes, ValueId weights,
                                                    ValueId zero_point) {
  HONE_ASSIGN_OR_RETURN(const Convolution c, Convolution::Of(NodeView(graph, convolution), 0, 1));
  if (c.channels_last || !IsPadded(c) || !PaysToPad(graph, c, bytes)) return std::nullopt;
  PaddedImage padded{convolution, weights};
  HONE_ASSIGN_OR_RETURN(padded.convolution.inputs[0],
                        AppendPad(graph, padded.convolution, bytes, c, 0, zero_point));
  return padded;
}

}  // namespace hone::graph
