#ifndef HONE_COMMON_IR_EXTENT_H_
#define HONE_COMMON_IR_EXTENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hone::ir {

// The extent of a loop, and how it was derived from the decisions of the trace. The derivation lets
// a design space compute the extent for other decisions without a replay.
struct Extent {
  int64_t value = 1;
  int32_t derivation = -1;  // a node of the program's ExtentTable; -1: a constant
};

// The derivations of one program: expressions over decision factors. Append-only. Copyable; IDs
// stay valid in a copy.
class ExtentTable {
 public:
  enum class Kind : uint8_t { kConstant, kFactor, kAdd, kMul, kCeilDiv };
  struct Node {
    Kind kind;
    // kConstant: the value; kFactor: the position in the decision vector; otherwise the left
    // operand.
    int64_t a = 0;
    int64_t b = 0;  // the right operand
  };

  static Extent Constant(int64_t value) { return {value, -1}; }
  // The decision at `position` of the decision vector.
  Extent Factor(int64_t value, int position);
  Extent Add(Extent a, Extent b);
  Extent Mul(Extent a, Extent b);
  Extent CeilDiv(Extent a, Extent b);

  // Returns the extent for other decisions. REQUIRES a decision for every factor.
  int64_t Evaluate(Extent extent, absl::Span<const int64_t> decisions) const;
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  Extent Combine(Kind kind, Extent a, Extent b, int64_t value);
  int64_t NodeOf(Extent extent);
  int64_t EvaluateNode(int64_t node, absl::Span<const int64_t> decisions) const;
  std::vector<Node> nodes_;
};

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_EXTENT_H_
