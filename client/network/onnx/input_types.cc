#include "client/network/onnx/input_types.h"

#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/network/onnx/tensor_proto.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::TensorType;
using Shape = std::vector<int64_t>;
using Dimension = ::onnx::TensorShapeProto::Dimension;

constexpr int64_t kOpen = -1;
constexpr int64_t kAssumedBatch = 1;

absl::Status InputError(const ::onnx::ValueInfoProto& input, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("input '", input.name(), "' ", what));
}

std::string DimensionText(const Dimension& dimension) {
  if (dimension.has_dim_value()) return absl::StrCat(dimension.dim_value());
  return dimension.dim_param().empty() ? "?" : dimension.dim_param();
}

}  // namespace

std::string ShapeText(const ::onnx::TensorShapeProto& shape) {
  return absl::StrCat("[",
                      absl::StrJoin(shape.dim(), ", ",
                                    [](std::string* out, const Dimension& dimension) {
                                      absl::StrAppend(out, DimensionText(dimension));
                                    }),
                      "]");
}

namespace {

class Binder {
 public:
  Binder(const std::map<std::string, Shape>& shapes, std::vector<std::string>& assumed)
      : shapes_(shapes), assumed_(assumed) {}

  absl::StatusOr<std::vector<TensorType>> Bind(
      const std::vector<const ::onnx::ValueInfoProto*>& inputs) {
    for (const auto* input : inputs) {
      if (!input->type().has_tensor_type()) {
        return absl::UnimplementedError(
            absl::StrCat("input '", input->name(), "' is not a tensor, which is not supported"));
      }
      HONE_RETURN_IF_ERROR(BindNames(*input));
    }
    HONE_RETURN_IF_ERROR(BindGivenNames(inputs));
    for (const auto* input : inputs) AssumeBatch(*input);
    std::vector<TensorType> types;
    for (const auto* input : inputs) {
      HONE_ASSIGN_OR_RETURN(TensorType type, TypeOf(*input));
      types.push_back(std::move(type));
    }
    return types;
  }

 private:
  const Shape* GivenShape(const ::onnx::ValueInfoProto& input) const {
    const auto given = shapes_.find(input.name());
    return given == shapes_.end() ? nullptr : &given->second;
  }

  // Notes the extents of named dimensions from the given shape of an input, which must fit the
  // model's.
  absl::Status BindNames(const ::onnx::ValueInfoProto& input) {
    const Shape* const given = GivenShape(input);
    const auto& tensor = input.type().tensor_type();
    if (given == nullptr || !tensor.has_shape()) return absl::OkStatus();
    const auto mismatch = [&] {
      return InputError(
          input, absl::StrCat("has the shape ", ShapeText(tensor.shape()), " in the model; [",
                              absl::StrJoin(*given, ", "), "] does not fit it"));
    };
    if (given->size() != static_cast<size_t>(tensor.shape().dim_size())) return mismatch();
    for (size_t d = 0; d < given->size(); ++d) {
      const Dimension& dimension = tensor.shape().dim(static_cast<int>(d));
      if (dimension.has_dim_value() && dimension.dim_value() >= 0) {
        if (dimension.dim_value() != (*given)[d]) return mismatch();
      } else if (!dimension.dim_param().empty()) {
        const auto [bound, is_new] = named_.emplace(dimension.dim_param(), (*given)[d]);
        if (is_new || bound->second == (*given)[d]) continue;
        return InputError(input,
                          absl::StrCat("has ", (*given)[d], " as dimension ", dimension.dim_param(),
                                       ", which is ", bound->second, " elsewhere"));
      }
    }
    return absl::OkStatus();
  }

  // The entries of shapes_ that are not inputs must be names of dimensions.
  absl::Status BindGivenNames(const std::vector<const ::onnx::ValueInfoProto*>& inputs) {
    std::set<std::string> names, dimensions;
    for (const auto* input : inputs) {
      names.insert(input->name());
      for (const Dimension& dimension : input->type().tensor_type().shape().dim()) {
        if (!dimension.dim_param().empty()) dimensions.insert(dimension.dim_param());
      }
    }
    for (const auto& [name, shape] : shapes_) {
      if (names.contains(name)) continue;
      if (!dimensions.contains(name) || shape.size() != 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "there is no input '", name, "' for which a shape is given; the inputs are ",
            absl::StrJoin(names, ", ")));
      }
      const auto [bound, is_new] = named_.emplace(name, shape[0]);
      if (!is_new && bound->second != shape[0]) {
        return absl::InvalidArgumentError(
            absl::StrCat("dimension ", name, " is given as ", shape[0], " and as ", bound->second));
      }
    }
    return absl::OkStatus();
  }

  // Sets the first dimension of an input to 1 if it is open.
  void AssumeBatch(const ::onnx::ValueInfoProto& input) {
    const auto& shape = input.type().tensor_type().shape();
    if (GivenShape(input) != nullptr || shape.dim_size() == 0) return;
    const Dimension& batch = shape.dim(0);
    if (ExtentOf(batch) != kOpen) return;
    const std::string& name = batch.dim_param();
    if (name.empty()) {
      assumed_.push_back(absl::StrCat("the first dimension of input '", input.name(),
                                      "' is open; it is taken as 1, and --shape gives another"));
    } else {
      named_.emplace(name, kAssumedBatch);
      assumed_.push_back(absl::StrCat("dimension ", name, " is open; it is taken as ",
                                      kAssumedBatch, ", and --shape ", name, "=4 gives another"));
    }
  }

  int64_t ExtentOf(const Dimension& dimension) const {
    if (dimension.has_dim_value()) return dimension.dim_value() < 0 ? kOpen : dimension.dim_value();
    const auto bound = named_.find(dimension.dim_param());
    return bound == named_.end() ? kOpen : bound->second;
  }

  absl::StatusOr<TensorType> TypeOf(const ::onnx::ValueInfoProto& input) const {
    const auto& tensor = input.type().tensor_type();
    const absl::StatusOr<ir::DType> dtype = ElementType(tensor.elem_type());
    if (!dtype.ok()) {
      return absl::Status(dtype.status().code(),
                          absl::StrCat("input '", input.name(), "' ", dtype.status().message()));
    }
    if (ir::IsPacked(*dtype)) {
      return InputError(input, absl::StrCat("is of type ", ir::DTypeName(*dtype),
                                            ", which only constants may have"));
    }
    TensorType type{*dtype, {}};
    if (const Shape* const given = GivenShape(input)) {
      type.shape = *given;
    } else if (!tensor.has_shape()) {
      return InputError(input, absl::StrCat("has no shape in the model; give it, as in --shape ",
                                            input.name(), "=1x3x224x224"));
    } else {
      type.shape = ExtentsOf(tensor.shape());
      if (absl::c_linear_search(type.shape, kOpen)) return Open(input);
    }
    const absl::Status legal = CheckType(type);
    return legal.ok() ? absl::StatusOr<TensorType>(type) : InputError(input, legal.message());
  }

  // The extents of a shape that is not given, which may be open.
  Shape ExtentsOf(const ::onnx::TensorShapeProto& shape) const {
    Shape extents;
    for (const Dimension& dimension : shape.dim()) extents.push_back(ExtentOf(dimension));
    if (!extents.empty() && extents[0] == kOpen) extents[0] = kAssumedBatch;
    return extents;
  }

  // Reports an open dimension, with an example of a shape that has 1 for open dimensions.
  absl::Status Open(const ::onnx::ValueInfoProto& input) const {
    const auto& shape = input.type().tensor_type().shape();
    Shape example = ExtentsOf(shape);
    absl::c_replace(example, kOpen, int64_t{1});
    return InputError(input, absl::StrCat("has the shape ", ShapeText(shape),
                                          ", which is not fixed; give it, as in --shape ",
                                          input.name(), "=", absl::StrJoin(example, "x")));
  }

  const std::map<std::string, Shape>& shapes_;
  std::vector<std::string>& assumed_;
  std::map<std::string, int64_t> named_;  // extents of dimensions with names
};

}  // namespace

absl::StatusOr<std::vector<TensorType>> InputTypes(
    const std::vector<const ::onnx::ValueInfoProto*>& inputs,
    const std::map<std::string, Shape>& shapes, std::vector<std::string>& assumed) {
  return Binder(shapes, assumed).Bind(inputs);
}

}  // namespace hone::onnx
