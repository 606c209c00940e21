#include "client/network/onnx/compose/composer.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::ValueId;
using Shape = std::vector<int64_t>;

}  // namespace

absl::StatusOr<ValueId> Composer::Apply(absl::string_view op, std::vector<ValueId> inputs,
                                        Attributes attributes) {
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> results,
                        ApplyFor({true}, op, std::move(inputs), std::move(attributes)));
  return results[0];
}

absl::StatusOr<std::vector<ValueId>> Composer::ApplyFor(const std::vector<bool>& wanted,
                                                        absl::string_view op,
                                                        std::vector<ValueId> inputs,
                                                        Attributes attributes) {
  while (!inputs.empty() && inputs.back() == graph::kNoValue) inputs.pop_back();
  graph::Node added{builder_.FreshNodeName(absl::StrCat(node_.name, "_", op)),
                    std::string(op),
                    std::move(inputs),
                    {},
                    std::move(attributes)};
  std::vector<std::string> names;
  for (const bool is_wanted : wanted) {
    names.push_back(is_wanted ? builder_.FreshTensorName(TensorName(op)) : "");
  }
  return builder_.Add(std::move(added), names);
}

ValueId Composer::Ints(absl::string_view name, const std::vector<int64_t>& elements) {
  return builder_.AddInts(TensorName(name), elements);
}

ValueId Composer::Floats(absl::string_view name, const std::vector<double>& elements) {
  return builder_.AddFloats(TensorName(name), elements);
}

ValueId Composer::Scalar(absl::string_view name, ValueId like, double value) {
  return builder_.AddScalar(TensorName(name), TypeOf(like).dtype, value);
}

ValueId Composer::Constant(absl::string_view name, const graph::TensorType& type,
                           const ir::Scalars& elements) {
  return builder_.graph().AddConstant(builder_.FreshTensorName(TensorName(name)), type,
                                      graph::ConstantData(Encode(type, elements)));
}

absl::Status Composer::Reserve(const graph::TensorType& type) {
  const absl::Status status = builder_.Reserve(type);
  if (status.ok()) return status;
  return absl::Status(status.code(), view().InvalidError(status.message()).message());
}

absl::StatusOr<ValueId> Composer::Cast(ValueId value, ir::DType dtype) {
  if (TypeOf(value).dtype == dtype) return value;
  // Any constant of the type gives the type to CastLike, which needs no number of ONNX.
  return Apply("CastLike", {value, builder_.AddScalar(TensorName("type"), dtype, 0)});
}

absl::StatusOr<ValueId> Composer::Reshape(ValueId value, const Shape& shape) {
  if (TypeOf(value).shape == shape) return value;
  const graph::TensorType type{TypeOf(value).dtype, shape};
  if (IsConstant(value) && CheckType(type).ok() && type.elements() == TypeOf(value).elements()) {
    const graph::ConstantData data = *builder_.graph().value(value).constant;
    return builder_.graph().AddConstant(builder_.FreshTensorName(TensorName("Reshape")), type,
                                        data);
  }
  return Apply("Reshape", {value, Ints("shape", shape)}, {{"allowzero", int64_t{1}}});
}

absl::StatusOr<ValueId> Composer::Transpose(ValueId value, Shape order) {
  return Apply("Transpose", {value}, {{"perm", std::move(order)}});
}

absl::StatusOr<ValueId> Composer::Slice(ValueId value, int64_t axis, int64_t begin, int64_t end) {
  graph::TensorType type = TypeOf(value);
  if (begin == 0 && end == type.shape[axis]) return value;
  const bool is_outermost = std::all_of(type.shape.begin(), type.shape.begin() + axis,
                                        [](int64_t extent) { return extent == 1; });
  if (IsConstant(value) && is_outermost && type.elements() > 0 && !ir::IsPacked(type.dtype)) {
    const graph::ConstantData data = *builder_.graph().value(value).constant;
    if (!data.is_computed()) {
      const int64_t bytes_each = type.bytes() / type.shape[axis];
      type.shape[axis] = end - begin;
      return builder_.graph().AddConstant(
          builder_.FreshTensorName(TensorName("Slice")), type,
          graph::ConstantData(std::make_shared<graph::ConstantData>(data),
                              data.bytes().substr(begin * bytes_each, type.bytes())));
    }
  }
  return Apply("Slice", {value, Ints("begin", {begin}), Ints("end", {end}), Ints("axis", {axis})});
}

absl::StatusOr<ValueId> Composer::At(ValueId value, int64_t axis, int64_t index) {
  HONE_ASSIGN_OR_RETURN(const ValueId slice, Slice(value, axis, index, index + 1));
  Shape shape = TypeOf(slice).shape;
  shape.erase(shape.begin() + axis);
  return Reshape(slice, shape);
}

absl::StatusOr<std::vector<ValueId>> Composer::Split(ValueId value, int64_t axis) {
  constexpr int64_t kMostParts = int64_t{1} << 15;
  const graph::TensorType type = TypeOf(value);
  const int64_t count = type.shape[axis];
  if (count > kMostParts) {
    return view().UnimplementedError(absl::StrCat("takes ", type.ToText(), " apart into ", count,
                                                  " parts; at most ", kMostParts,
                                                  " are supported"));
  }
  // One node of several parts is one kernel if the parts must be copied.
  if (count > 1 && !IsConstant(value)) {
    return ApplyFor(std::vector<bool>(count, true), "Split", {value},
                    {{"axis", axis}, {"num_outputs", count}});
  }
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < count; ++i) {
    HONE_ASSIGN_OR_RETURN(parts.emplace_back(), Slice(value, axis, i, i + 1));
  }
  return parts;
}

absl::StatusOr<std::vector<ValueId>> Composer::Unstack(ValueId value, int64_t axis) {
  Shape shape = TypeOf(value).shape;
  shape.erase(shape.begin() + axis);
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> parts, Split(value, axis));
  for (ValueId& part : parts) {
    HONE_ASSIGN_OR_RETURN(part, Reshape(part, shape));
  }
  return parts;
}

absl::StatusOr<ValueId> Composer::Concat(std::vector<ValueId> parts, int64_t axis) {
  constexpr ptrdiff_t kMost = 128;  // a workload has a limited number of tensors
  while (parts.size() > 1) {
    std::vector<ValueId> joined;
    for (auto first = parts.begin(); first != parts.end();) {
      const auto last = first + std::min(kMost, parts.end() - first);
      if (last - first == 1) {
        joined.push_back(*first);
      } else {
        HONE_ASSIGN_OR_RETURN(joined.emplace_back(),
                              Apply("Concat", {first, last}, {{"axis", axis}}));
      }
      first = last;
    }
    parts = std::move(joined);
  }
  return parts[0];
}

absl::StatusOr<ValueId> Composer::Stack(std::vector<ValueId> parts, int64_t axis) {
  for (ValueId& part : parts) {
    Shape shape = TypeOf(part).shape;
    shape.insert(shape.begin() + axis, 1);
    HONE_ASSIGN_OR_RETURN(part, Reshape(part, shape));
  }
  return Concat(std::move(parts), axis);
}

std::string Composer::TensorName(absl::string_view suffix) const {
  return absl::StrCat(node_.name, "_", suffix);
}

}  // namespace hone::onnx
