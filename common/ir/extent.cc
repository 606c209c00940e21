#include "common/ir/extent.h"

#include "common/ir/index.h"

namespace hone::ir {

int64_t ExtentTable::NodeOf(Extent extent) {
  if (extent.derivation >= 0) return extent.derivation;
  nodes_.push_back({Kind::kConstant, extent.value, 0});
  return static_cast<int64_t>(nodes_.size()) - 1;
}

Extent ExtentTable::Combine(Kind kind, Extent a, Extent b, int64_t value) {
  if (a.derivation < 0 && b.derivation < 0) return Constant(value);
  if (nodes_.size() + 3 > nodes_.capacity()) nodes_.reserve(2 * nodes_.size() + 64);
  const int64_t left = NodeOf(a), right = NodeOf(b);
  nodes_.push_back({kind, left, right});
  return {value, static_cast<int32_t>(nodes_.size()) - 1};
}

Extent ExtentTable::Factor(int64_t value, int position) {
  nodes_.push_back({Kind::kFactor, position, 0});
  return {value, static_cast<int32_t>(nodes_.size()) - 1};
}
Extent ExtentTable::Add(Extent a, Extent b) { return Combine(Kind::kAdd, a, b, a.value + b.value); }
Extent ExtentTable::Mul(Extent a, Extent b) { return Combine(Kind::kMul, a, b, a.value * b.value); }
Extent ExtentTable::CeilDiv(Extent a, Extent b) {
  return Combine(Kind::kCeilDiv, a, b, CeilDivInt(a.value, b.value));
}

int64_t ExtentTable::Evaluate(Extent extent, absl::Span<const int64_t> decisions) const {
  return extent.derivation < 0 ? extent.value : EvaluateNode(extent.derivation, decisions);
}

int64_t ExtentTable::EvaluateNode(int64_t node, absl::Span<const int64_t> decisions) const {
  const Node& n = nodes_[static_cast<size_t>(node)];
  switch (n.kind) {
    case Kind::kConstant:
      return n.a;
    case Kind::kFactor:
      return decisions[static_cast<size_t>(n.a)];
    case Kind::kAdd:
      return EvaluateNode(n.a, decisions) + EvaluateNode(n.b, decisions);
    case Kind::kMul:
      return EvaluateNode(n.a, decisions) * EvaluateNode(n.b, decisions);
    case Kind::kCeilDiv:
      return CeilDivInt(EvaluateNode(n.a, decisions), EvaluateNode(n.b, decisions));
  }
  return 0;
}

}  // namespace hone::ir
