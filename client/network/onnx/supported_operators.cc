#include "client/network/onnx/supported_operators.h"

#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/network/graph/operator_def.h"
#include "client/network/onnx/body/sequence.h"
#include "client/network/onnx/compose/composition.h"
#include "client/network/onnx/opset.h"
#include "client/network/onnx/replaced.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {
namespace {

// The operators of which other nodes remain, or none, with the notes on them.
const std::map<std::string, std::string>& ImporterLimits() {
  static const auto* const limits = [] {
    auto* const all = new std::map<std::string, std::string>{
        {"If", "a condition that is known when the model is read"},
        {"Loop", "a condition and a trip count that are known when the model is read"},
        {"Scan", ""},
        {"SequenceMap", ""}};
    for (const std::string& op : SequenceOperators()) {
      all->emplace(op, "not for inputs and outputs of the model; constant positions and sizes");
    }
    for (const Composition& each : Compositions()) {
      if (graph::FindOperator(each.op) == nullptr) {
        all->emplace(std::string(each.op), std::string(each.limits));
      }
    }
    return all;
  }();
  return *limits;
}

bool IsSupported(const ::onnx::NodeProto& node, int64_t opset) {
  const std::string op = OperatorName(node);
  if (IsOwnDomain(node.domain()) && opset < OldestOpset(op)) return false;
  return IsReplaced(op) || ImporterLimits().contains(op) ||
         graph::FindOperator(CurrentName(op)) != nullptr;
}

// The note on an operator that the importer replaces.
std::string ReplacementNote(absl::string_view op) {
  if (op == "Dropout") return "does nothing outside of training";
  return op == CurrentName(op) ? "" : absl::StrCat("becomes ", CurrentName(op));
}

// Why some operators are not supported, for messages. Names that end with * are prefixes.
struct Reason {
  std::vector<absl::string_view> ops;
  absl::string_view text;
};

const std::vector<Reason>& Reasons() {
  static const auto* const reasons = new std::vector<Reason>{
      {{"Bernoulli", "Multinomial", "Random*"}, "random numbers are not supported"},
      {{"RegexFullMatch", "String*", "TfIdfVectorizer"}, "strings are not supported"},
  };
  return *reasons;
}

// Returns "; " and why an operator is not supported, or "" if no reason is known.
std::string ReasonText(absl::string_view op) {
  for (const Reason& reason : Reasons()) {
    for (absl::string_view pattern : reason.ops) {
      const bool matches =
          absl::ConsumeSuffix(&pattern, "*") ? absl::StartsWith(op, pattern) : op == pattern;
      if (matches) return absl::StrCat("; ", reason.text);
    }
  }
  return "";
}

struct Uses {
  int count = 0;
  std::string first;
  std::string reason;
};

}  // namespace

bool IsOwnDomain(absl::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

std::optional<int64_t> NewestVersion(absl::string_view domain) {
  if (IsOwnDomain(domain)) return kNewestOpset;
  if (domain == "com.microsoft") return 1;
  return std::nullopt;
}

std::string OperatorName(const ::onnx::NodeProto& node) {
  return IsOwnDomain(node.domain()) ? node.op_type()
                                    : absl::StrCat(node.domain(), ".", node.op_type());
}

std::vector<SupportedOperator> SupportedOperators() {
  std::map<std::string, std::string> limits = ImporterLimits();
  for (const graph::OperatorDef* const def : graph::Operators()) {
    limits[std::string(def->name)] = std::string(def->limits);
  }
  for (const char* const op :
       {"Constant", "ConstantOfShape", "Dropout", "GatherND", "Identity", "Scatter", "Upsample"}) {
    if (IsReplaced(op) || limits.contains(std::string(CurrentName(op)))) {
      limits[op] = ReplacementNote(op);
    }
  }
  std::vector<SupportedOperator> operators;
  for (auto& [name, limit] : limits) operators.push_back({name, limit});
  return operators;
}

absl::Status CheckOperators(const ::onnx::GraphProto& graph, const std::vector<int>& nodes,
                            int64_t opset,
                            const std::function<bool(const ::onnx::NodeProto&)>& is_function) {
  std::map<std::string, Uses> unsupported;
  for (const int n : nodes) {
    const ::onnx::NodeProto& node = graph.node(n);
    if (is_function(node) || IsSupported(node, opset)) continue;
    const std::string op = IsOwnDomain(node.domain())
                               ? absl::StrCat(node.op_type(), " (opset ", opset, ")")
                               : absl::StrCat(node.op_type(), " (of ", node.domain(), ")");
    Uses& uses = unsupported[op];
    if (uses.count++ > 0) continue;
    uses.first = node.name();
    if (IsOwnDomain(node.domain())) uses.reason = ReasonText(node.op_type());
  }
  if (unsupported.empty()) return absl::OkStatus();
  std::string text =
      absl::StrCat(unsupported.size(), unsupported.size() == 1 ? " operator is not supported:"
                                                               : " operators are not supported:");
  for (const auto& [op, uses] : unsupported) {
    absl::StrAppend(&text, "\n  ", op, ": ", uses.count,
                    uses.count == 1 ? " node, '" : " nodes, first '", uses.first, "'", uses.reason);
  }
  return absl::UnimplementedError(
      absl::StrCat(text, "\nhone operators --onnx lists those that are supported"));
}

}  // namespace hone::onnx
