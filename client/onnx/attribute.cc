#include "client/onnx/attribute.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/onnx/tensor_proto.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using Proto = ::onnx::AttributeProto;

absl::Status Read(const Proto& proto, ExternalData& files, Attributes& attributes) {
  graph::Attribute& plain = attributes.plain[proto.name()];
  switch (proto.type()) {
    case Proto::INT:
      plain = proto.i();
      return absl::OkStatus();
    case Proto::FLOAT:
      plain = static_cast<double>(proto.f());
      return absl::OkStatus();
    case Proto::STRING:
      plain = proto.s();
      return absl::OkStatus();
    case Proto::INTS:
      plain = std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
      return absl::OkStatus();
    case Proto::FLOATS:
      plain = std::vector<double>(proto.floats().begin(), proto.floats().end());
      return absl::OkStatus();
    case Proto::STRINGS:
      plain = std::vector<std::string>(proto.strings().begin(), proto.strings().end());
      return absl::OkStatus();
    case Proto::TENSOR: {
      attributes.plain.erase(proto.name());
      HONE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(proto.t(), files));
      attributes.tensors.emplace(proto.name(), std::move(tensor));
      return absl::OkStatus();
    }
    case Proto::GRAPH:
    case Proto::GRAPHS:
      return absl::UnimplementedError("is a graph, which is not supported");
    case Proto::SPARSE_TENSOR:
    case Proto::SPARSE_TENSORS:
      return absl::UnimplementedError("is a sparse tensor, which is not supported");
    default:
      return absl::UnimplementedError("has a kind that is not supported");
  }
}

}  // namespace

absl::StatusOr<Attributes> ReadAttributes(const ::onnx::NodeProto& node, ExternalData& files) {
  Attributes attributes;
  for (const Proto& proto : node.attribute()) {
    const bool twice =
        attributes.plain.contains(proto.name()) || attributes.tensors.contains(proto.name());
    absl::Status status;
    if (twice) {
      status = absl::InvalidArgumentError("is given twice");
    } else if (!proto.ref_attr_name().empty()) {
      status = absl::InvalidArgumentError("refers to an attribute of a function");
    } else {
      status = Read(proto, files, attributes);
    }
    if (status.ok()) continue;
    return absl::Status(status.code(),
                        absl::StrCat("attribute '", proto.name(), "' ", status.message()));
  }
  return attributes;
}

}  // namespace hone::onnx
