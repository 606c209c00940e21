#include "client/network/graph/node_view.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"

namespace hone::graph {
namespace {

absl::string_view KindOf(int64_t) { return "a whole number"; }
absl::string_view KindOf(double) { return "a number"; }
absl::string_view KindOf(const std::string&) { return "a string"; }
absl::string_view KindOf(const std::vector<int64_t>&) { return "a list of whole numbers"; }
absl::string_view KindOf(const std::vector<double>&) { return "a list of numbers"; }
absl::string_view KindOf(const std::vector<std::string>&) { return "a list of strings"; }

template <typename T>
absl::StatusOr<T> Find(const NodeView& view, absl::string_view name, T default_value) {
  const auto found = view.node().attributes.find(std::string(name));
  if (found == view.node().attributes.end()) return default_value;
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  return view.InvalidError(absl::StrCat("attribute '", name, "' must be ", KindOf(default_value)));
}

}  // namespace

absl::StatusOr<std::vector<ir::Scalar>> NodeView::Elements(int input) const {
  const Value& value = graph_.value(node_.inputs[input]);
  if (value.constant) return Decode(value.type, value.constant->bytes());
  return absl::FailedPreconditionError(Describe(absl::StrCat(
      "input ", input, " ('", value.name, "') must be constant, because shapes depend on it")));
}

absl::StatusOr<std::vector<int64_t>> NodeView::Ints(int input) const {
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalar> elements, Elements(input));
  std::vector<int64_t> ints;
  for (const ir::Scalar& element : elements) ints.push_back(element.whole());
  return ints;
}

bool NodeView::HasAttribute(absl::string_view name) const {
  return node_.attributes.contains(std::string(name));
}

absl::StatusOr<int64_t> NodeView::Int(absl::string_view name, int64_t default_value) const {
  return Find(*this, name, default_value);
}

absl::StatusOr<double> NodeView::Float(absl::string_view name, double default_value) const {
  return Find(*this, name, default_value);
}

absl::StatusOr<std::string> NodeView::String(absl::string_view name,
                                             std::string default_value) const {
  return Find(*this, name, std::move(default_value));
}

absl::StatusOr<std::vector<int64_t>> NodeView::IntList(absl::string_view name,
                                                       std::vector<int64_t> default_value) const {
  return Find(*this, name, std::move(default_value));
}

absl::StatusOr<std::vector<double>> NodeView::FloatList(absl::string_view name,
                                                        std::vector<double> default_value) const {
  return Find(*this, name, std::move(default_value));
}

absl::StatusOr<std::vector<std::string>> NodeView::StringList(
    absl::string_view name, std::vector<std::string> default_value) const {
  return Find(*this, name, std::move(default_value));
}

absl::StatusOr<int64_t> NodeView::AxisAttribute(absl::string_view name, int64_t default_value,
                                                int64_t rank) const {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, Int(name, default_value));
  if (-rank <= axis && axis < rank) return axis < 0 ? axis + rank : axis;
  return InvalidError(
      absl::StrCat("attribute '", name, "' is ", axis, " for a tensor of rank ", rank));
}

std::string NodeView::Describe(absl::string_view what) const {
  return absl::StrCat("node '", node_.name, "' (", node_.op, "): ", what);
}

absl::Status NodeView::InvalidError(absl::string_view what) const {
  return absl::InvalidArgumentError(Describe(what));
}

absl::Status NodeView::UnimplementedError(absl::string_view what) const {
  return absl::UnimplementedError(Describe(what));
}

std::vector<ir::Scalar> Decode(const TensorType& type, absl::string_view bytes) {
  std::vector<ir::Scalar> elements(type.elements());
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = ir::ReadElement(type.dtype, bytes.data(), static_cast<int64_t>(i));
  }
  return elements;
}

std::string Encode(const TensorType& type, const std::vector<ir::Scalar>& elements) {
  std::string bytes(type.bytes(), '\0');
  for (size_t i = 0; i < elements.size(); ++i) {
    ir::WriteElement(type.dtype, bytes.data(), static_cast<int64_t>(i), elements[i]);
  }
  return bytes;
}

}  // namespace hone::graph
