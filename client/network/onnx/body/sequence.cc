#include "client/network/onnx/body/sequence.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/compose/composer.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::ValueId;
using Values = std::vector<ValueId>;

class OnItems {
 public:
  OnItems(const ItemNode& node, GraphBuilder& builder)
      : node_(node), builder_(builder), composer_(builder, node.node, node.opset, node.outputs) {}

  absl::StatusOr<Item> Add() {
    const std::string& op = node_.node.op;
    if (op == "Identity" || op == "Optional") return Same();
    if (op == "OptionalGetElement") return Content();
    if (op == "OptionalHasElement") {
      return Flag(node_.Has(0) && !node_.inputs[0].is_empty_optional);
    }
    if (op == "SequenceConstruct") return Construct();
    if (op == "SequenceEmpty") return Item::Sequence({});
    if (op == "SplitToSequence") return Split();
    HONE_ASSIGN_OR_RETURN(Values tensors, Sequence());
    if (op == "SequenceLength") {
      return Item::Tensor(composer_.Constant("length", {ir::DType::kI64, {}},
                                             {static_cast<int64_t>(tensors.size())}));
    }
    if (op == "ConcatFromSequence") return Concat(std::move(tensors));
    if (op == "SequenceInsert") return Insert(std::move(tensors));
    HONE_ASSIGN_OR_RETURN(const int64_t at, Position(1, std::ssize(tensors)));
    if (op == "SequenceAt") return Item::Tensor(tensors[at]);
    tensors.erase(tensors.begin() + at);  // SequenceErase
    return Item::Sequence(std::move(tensors));
  }

 private:
  graph::NodeView view() const { return graph::NodeView(builder_.graph(), node_.node); }
  const graph::TensorType& TypeOf(ValueId id) const { return builder_.graph().value(id).type; }

  absl::StatusOr<Values> Sequence() const {
    if (!node_.inputs.empty() && node_.inputs[0].sequence) return *node_.inputs[0].sequence;
    return view().InvalidError("input 0 must be a sequence");
  }
  absl::StatusOr<ValueId> Tensor(size_t input) const {
    if (node_.Has(input) && node_.inputs[input].IsTensor()) return node_.inputs[input].tensor;
    return view().InvalidError(absl::StrCat("input ", input, " must be a tensor"));
  }
  absl::StatusOr<std::vector<int64_t>> Ints(size_t input) const {
    HONE_ASSIGN_OR_RETURN(const ValueId id, Tensor(input));
    graph::Node reader = node_.node;
    reader.inputs.assign(input + 1, kNoValue);
    reader.inputs[input] = id;
    return graph::NodeView(builder_.graph(), reader).Ints(static_cast<int>(input));
  }
  // The position in a sequence that an input gives; `end` positions are legal.
  absl::StatusOr<int64_t> Position(size_t input, int64_t end) const {
    int64_t at = -1;
    if (node_.Has(input)) {
      HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> elements, Ints(input));
      if (elements.size() != 1) return view().InvalidError("a position must have one element");
      at = elements[0];
    }
    if (-end <= at && at < end) return at < 0 ? at + end : at;
    return view().InvalidError(
        absl::StrCat("position ", at, " of a sequence of ", Sequence()->size(), " tensors"));
  }

  absl::StatusOr<Item> Same() const {
    if (node_.Has(0)) return node_.inputs[0];
    return Item{.is_empty_optional = true};
  }
  absl::StatusOr<Item> Content() const {
    if (node_.Has(0) && !node_.inputs[0].is_empty_optional) return node_.inputs[0];
    return view().InvalidError("its input is an optional value without content");
  }
  absl::StatusOr<Item> Flag(bool value) {
    return Item::Tensor(composer_.Constant("flag", {ir::DType::kBool, {}},
                                           {ir::CastTo(ir::DType::kBool, value ? 1.0 : 0.0)}));
  }

  absl::StatusOr<Item> Construct() const {
    Values tensors;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(tensors.emplace_back(), Tensor(i));
    }
    return Item::Sequence(std::move(tensors));
  }

  absl::StatusOr<Item> Insert(Values tensors) const {
    HONE_ASSIGN_OR_RETURN(const ValueId tensor, Tensor(1));
    int64_t at = std::ssize(tensors);
    if (node_.Has(2)) {
      HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> given, Ints(2));
      const int64_t most = std::ssize(tensors);
      if (given.size() != 1 || given[0] < -most || given[0] > most) {
        return view().InvalidError(absl::StrCat("inserts into a sequence of ", most,
                                                " tensors at a position that it does not have"));
      }
      at = given[0] < 0 ? given[0] + most : given[0];
    }
    tensors.insert(tensors.begin() + at, tensor);
    return Item::Sequence(std::move(tensors));
  }

  absl::StatusOr<Item> Concat(Values tensors) {
    HONE_ASSIGN_OR_RETURN(const int64_t new_axis, view().Int("new_axis", 0));
    if (tensors.empty()) return view().InvalidError("joins a sequence without tensors");
    const int64_t rank = std::ssize(TypeOf(tensors[0]).shape) + (new_axis != 0 ? 1 : 0);
    HONE_ASSIGN_OR_RETURN(const int64_t axis, view().AxisAttribute("axis", 0, rank));
    HONE_ASSIGN_OR_RETURN(const ValueId joined, new_axis != 0
                                                    ? composer_.Stack(std::move(tensors), axis)
                                                    : composer_.Concat(std::move(tensors), axis));
    return Item::Tensor(joined);
  }

  absl::StatusOr<Item> Split() {
    HONE_ASSIGN_OR_RETURN(const ValueId tensor, Tensor(0));
    const graph::TensorType type = TypeOf(tensor);
    HONE_ASSIGN_OR_RETURN(const int64_t axis,
                          view().AxisAttribute("axis", 0, std::ssize(type.shape)));
    HONE_ASSIGN_OR_RETURN(const int64_t keep, view().Int("keepdims", 1));
    const int64_t extent = type.shape[axis];
    std::vector<int64_t> sizes;
    if (node_.Has(1)) {
      HONE_ASSIGN_OR_RETURN(sizes, Ints(1));
    }
    if (!node_.Has(1) || TypeOf(node_.inputs[1].tensor).shape.empty()) {  // parts of equal size
      const int64_t size = sizes.empty() ? 1 : sizes[0];
      if (size < 1) return view().InvalidError(absl::StrCat("splits into parts of ", size));
      sizes.clear();
      for (int64_t begin = 0; begin < extent; begin += size) {
        if (std::ssize(sizes) == kMostParts) break;
        sizes.push_back(std::min(size, extent - begin));
      }
    }
    if (std::ssize(sizes) >= kMostParts) {
      return view().UnimplementedError(
          absl::StrCat("splits into ", kMostParts, " parts or more, which is not supported"));
    }
    Values parts;
    int64_t begin = 0;
    for (const int64_t size : sizes) {
      if (size < 0 || size > extent - begin) {
        return view().InvalidError(
            absl::StrCat("splits ", extent, " elements into parts of ", "other sizes"));
      }
      HONE_ASSIGN_OR_RETURN(ValueId part, composer_.Slice(tensor, axis, begin, begin + size));
      begin += size;
      if (keep == 0 && !node_.Has(1)) {
        std::vector<int64_t> shape = type.shape;
        shape.erase(shape.begin() + axis);
        HONE_ASSIGN_OR_RETURN(part, composer_.Reshape(part, shape));
      }
      parts.push_back(part);
    }
    if (begin != extent) {
      return view().InvalidError(
          absl::StrCat("splits ", extent, " elements into parts of ", begin, " in all"));
    }
    return Item::Sequence(std::move(parts));
  }

  static constexpr int64_t kMostParts = int64_t{1} << 14;  // each becomes a node

  const ItemNode& node_;
  GraphBuilder& builder_;
  Composer composer_;
};

}  // namespace

const std::vector<std::string>& SequenceOperators() {
  static const auto* const operators = new std::vector<std::string>{
      "ConcatFromSequence", "Optional",          "OptionalGetElement", "OptionalHasElement",
      "SequenceAt",         "SequenceConstruct", "SequenceEmpty",      "SequenceErase",
      "SequenceInsert",     "SequenceLength",    "SplitToSequence"};
  return *operators;
}

bool IsOnItems(const ItemNode& node) {
  const std::vector<std::string>& operators = SequenceOperators();
  return std::find(operators.begin(), operators.end(), node.node.op) != operators.end() ||
         (node.node.op == "Identity" && !node.inputs.empty() && !node.inputs[0].IsTensor());
}

absl::StatusOr<std::vector<Item>> AddOnItems(const ItemNode& node, GraphBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(Item result, OnItems(node, builder).Add());
  return std::vector<Item>{std::move(result)};
}

}  // namespace hone::onnx
