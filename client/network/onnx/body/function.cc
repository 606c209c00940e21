#include "client/network/onnx/body/function.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/body/running_order.h"
#include "client/network/onnx/supported_operators.h"

namespace hone::onnx {
namespace {

using CallAttributes = std::map<std::string, const ::onnx::AttributeProto*>;

// The memory that all copies of bodies may take.
constexpr size_t kMostCopied = size_t{1} << 28;

void ReplaceReferences(const CallAttributes& given, ::onnx::GraphProto& body, size_t& copied);

// Replaces the references of a node to attributes of the call. An attribute that the call does not
// have is left out. Adds the memory of the copies to `copied`, and stops at kMostCopied.
void ReplaceReferences(const CallAttributes& given, ::onnx::NodeProto& node, size_t& copied) {
  google::protobuf::RepeatedPtrField<::onnx::AttributeProto> attributes;
  for (::onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.ref_attr_name().empty()) {
      if (attribute.has_g()) ReplaceReferences(given, *attribute.mutable_g(), copied);
      for (auto& body : *attribute.mutable_graphs()) ReplaceReferences(given, body, copied);
      *attributes.Add() = std::move(attribute);
    } else if (const auto value = given.find(attribute.ref_attr_name()); value != given.end()) {
      copied += value->second->SpaceUsedLong();
      if (copied > kMostCopied) break;
      ::onnx::AttributeProto& copy = *attributes.Add();
      copy = *value->second;
      copy.set_name(attribute.name());
    }
  }
  node.mutable_attribute()->Swap(&attributes);
}

void ReplaceReferences(const CallAttributes& given, ::onnx::GraphProto& body, size_t& copied) {
  for (::onnx::NodeProto& node : *body.mutable_node()) ReplaceReferences(given, node, copied);
}

// The default values of a function's attributes. Older versions of ONNX's messages do not have this
// field, and keep it as bytes.
template <typename Function>
std::vector<::onnx::AttributeProto> DefaultsOf(const Function& function) {
  std::vector<::onnx::AttributeProto> defaults;
  if constexpr (requires { function.attribute_proto(); }) {
    defaults.assign(function.attribute_proto().begin(), function.attribute_proto().end());
  } else {
    constexpr int kAttributeProto = 11;  // the number of the field
    const auto& fields = function.unknown_fields();
    for (int i = 0; i < fields.field_count(); ++i) {
      const auto& field = fields.field(i);
      const bool is_default = field.number() == kAttributeProto &&
                              field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED;
      ::onnx::AttributeProto attribute;
      if (is_default && attribute.ParseFromString(field.length_delimited())) {
        defaults.push_back(std::move(attribute));
      }
    }
  }
  return defaults;
}

// ONNX's own domain has two names.
std::string DomainOf(const std::string& domain) { return IsOwnDomain(domain) ? "" : domain; }

}  // namespace

Functions::Functions(const ::onnx::ModelProto& model) {
  for (const ::onnx::FunctionProto& function : model.functions()) {
    const auto [entry, is_new] =
        functions_.emplace(std::pair(DomainOf(function.domain()), function.name()), &function);
    if (!is_new) entry->second = nullptr;
  }
}

bool Functions::Has(const ::onnx::NodeProto& node) const {
  return functions_.contains({DomainOf(node.domain()), node.op_type()});
}

absl::StatusOr<Functions::Body> Functions::BodyFor(const ::onnx::NodeProto& call, int64_t opset) {
  const ::onnx::FunctionProto* const found =
      functions_.at({DomainOf(call.domain()), call.op_type()});
  if (found == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        Describe(call), ": the model has several functions of this name, which is not supported"));
  }
  const ::onnx::FunctionProto& function = *found;
  if (call.input_size() > function.input_size() || call.output_size() > function.output_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(call), ": has ", call.input_size(), " inputs and ",
                     call.output_size(), " outputs, but the model's function has ",
                     function.input_size(), " and ", function.output_size()));
  }
  const auto too_many = [&] {
    return absl::UnimplementedError(
        absl::StrCat(Describe(call), ": the bodies of all calls of functions have more than ",
                     kMostCopied, " bytes together, which is the limit"));
  };
  copied_bytes_ += function.SpaceUsedLong();
  if (copied_bytes_ > kMostCopied) return too_many();
  const std::vector<::onnx::AttributeProto> defaults = DefaultsOf(function);
  CallAttributes given;
  for (const auto& attribute : defaults) given[attribute.name()] = &attribute;
  for (const auto& attribute : call.attribute()) given[attribute.name()] = &attribute;
  ::onnx::GraphProto& body = bodies_.emplace_back();
  body.set_name(function.name());
  for (const std::string& name : function.input()) body.add_input()->set_name(name);
  for (int i = 0; i < call.output_size(); ++i) body.add_output()->set_name(function.output(i));
  *body.mutable_node() = function.node();
  ReplaceReferences(given, body, copied_bytes_);
  if (copied_bytes_ > kMostCopied) return too_many();
  for (const auto& import : function.opset_import()) {
    if (DomainOf(import.domain()).empty()) opset = import.version();
  }
  return Body{&body, opset};
}

}  // namespace hone::onnx
