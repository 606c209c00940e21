#include "client/network/onnx/rewrite.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::onnx {

std::optional<graph::Attribute> Rewrite::Take(const std::string& name) {
  auto taken = node().attributes.extract(name);
  if (taken.empty()) return std::nullopt;
  return std::move(taken.mapped());
}

void Rewrite::SetInput(size_t index, graph::ValueId value) {
  if (node().inputs.size() <= index) node().inputs.resize(index + 1, graph::kNoValue);
  node().inputs[index] = value;
}

absl::Status Rewrite::ListToInput(const std::string& name, size_t index) {
  const std::optional<graph::Attribute> value = Take(name);
  if (!value) return absl::OkStatus();
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&*value)) {
    SetInput(index, builder_.AddInts(TensorName(name), *ints));
  } else if (const auto* one = std::get_if<int64_t>(&*value)) {
    SetInput(index, builder_.AddInts(TensorName(name), {*one}));
  } else if (const auto* floats = std::get_if<std::vector<double>>(&*value)) {
    SetInput(index, builder_.AddFloats(TensorName(name), *floats));
  } else {
    return view().InvalidError(absl::StrCat("attribute '", name, "' must be a list of numbers"));
  }
  return absl::OkStatus();
}

absl::Status Rewrite::NumberToInput(const std::string& name, size_t index) {
  if (!view().HasAttribute(name)) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const double number, view().Float(name, 0));
  Take(name);
  SetInput(index, builder_.AddScalar(TensorName(name), view().Type(0).dtype, number));
  return absl::OkStatus();
}

absl::StatusOr<graph::ValueId> Rewrite::Filled(absl::string_view name, graph::TensorType type,
                                               const ir::Scalar& element) {
  absl::StatusOr<graph::ValueId> filled =
      builder_.AddFilled(builder_.FreshTensorName(TensorName(name)), std::move(type), element);
  if (filled.ok()) return filled;
  return absl::Status(filled.status().code(),
                      view().InvalidError(filled.status().message()).message());
}

}  // namespace hone::onnx
