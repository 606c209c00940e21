#include "client/network/graph/partition/workload_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/network/graph/op/layout.h"

namespace hone::graph {
namespace {

constexpr size_t kMaxParts = 5;

// A sequence of operators that has its own name. Longer sequences come first.
struct Phrase {
  absl::string_view operators, name;
};
constexpr Phrase kPhrases[] = {
    {"reduce_mean sub pow reduce_mean add sqrt div mul add", "layer_norm"},
    {"reduce_mean sub mul reduce_mean add sqrt div mul add", "layer_norm"},
    {"reduce_mean sub pow reduce_mean add sqrt div", "normalize"},
    {"reduce_max sub exp reduce_sum div", "softmax"},
    {"div erf add mul mul", "gelu"},
    {"hard_sigmoid mul", "hard_swish"},
    {"sigmoid mul", "swish"},
};

// "BatchNormalization" → "batch_normalization", "LSTM" → "lstm".
std::string SnakeCase(absl::string_view op) {
  std::string name;
  for (size_t i = 0; i < op.size(); ++i) {
    const bool begins_word =
        i > 0 && absl::ascii_isupper(op[i]) &&
        (absl::ascii_islower(op[i - 1]) || (i + 1 < op.size() && absl::ascii_islower(op[i + 1])));
    if (begins_word) name += '_';
    name += absl::ascii_tolower(op[i]);
  }
  return name;
}

std::string NameOf(const Graph& graph, const Node& node) {
  const auto rank = [&](int input) { return graph.value(node.inputs[input]).type.shape.size(); };
  if (node.op == "MatMul" && rank(0) > 2 && rank(1) > 2) return "batch_matmul";
  if (node.op == "MatMul" || node.op == "Gemm") return absl::AsciiStrToLower(node.op);
  const std::string name = SnakeCase(node.op);
  if ((name == "conv" || name == "conv_transpose" || absl::EndsWith(name, "_pool")) &&
      !absl::StartsWith(name, "global_") && rank(0) > 2) {
    const std::vector<int64_t>& image = graph.value(node.inputs[0]).type.shape;
    const int64_t channels = node.attributes.contains(kChannelsLast) ? image.back() : image[1];
    const auto group = node.attributes.find("group");
    const bool depthwise =
        group != node.attributes.end() && channels > 1 && group->second == Attribute(channels);
    return absl::StrCat(depthwise ? "depthwise_" : "", name, rank(0) - 2, "d");
  }
  return name;
}

// Replaces phrases by their names.
std::vector<std::string> Abbreviate(std::vector<std::string> parts) {
  for (const Phrase& phrase : kPhrases) {
    const std::vector<std::string> operators = absl::StrSplit(phrase.operators, ' ');
    while (true) {
      const auto found =
          std::search(parts.begin(), parts.end(), operators.begin(), operators.end());
      if (found == parts.end()) break;
      *found = std::string(phrase.name);
      parts.erase(found + 1, found + static_cast<int64_t>(operators.size()));
    }
  }
  return parts;
}

// Whether the nodes are two products with a softmax between.
bool IsAttention(const std::vector<std::string>& parts) {
  const auto is_product = [](const std::string& part) { return absl::EndsWith(part, "matmul"); };
  const auto softmax = std::find(parts.begin(), parts.end(), "softmax");
  return softmax != parts.end() && std::any_of(parts.begin(), softmax, is_product) &&
         std::any_of(softmax, parts.end(), is_product);
}

}  // namespace

std::string WorkloadName(const Graph& graph, const std::vector<int>& nodes) {
  std::vector<std::string> parts;
  for (const int n : nodes) parts.push_back(NameOf(graph, graph.nodes[n]));
  parts = Abbreviate(std::move(parts));
  if (IsAttention(parts)) return "attention";
  if (parts.size() > kMaxParts) {
    parts.resize(kMaxParts);
    parts.push_back("more");
  }
  return absl::StrJoin(parts, "_");
}

}  // namespace hone::graph
