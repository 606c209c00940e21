#ifndef HONE_CLIENT_NETWORK_ONNX_IMPORT_H_
#define HONE_CLIENT_NETWORK_ONNX_IMPORT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/graph.h"
#include "client/network/onnx/host_tail.h"
#include "client/network/onnx/tensor_file.h"
#include "common/base/digest.h"

namespace hone::onnx {

struct ImportOptions {
  // Shapes of inputs by name, for the dimensions that the model leaves open. A dimension with a
  // name may also be given by this name, as a list of one extent. The first dimension of an input
  // is 1 if it is open and not given.
  std::map<std::string, std::vector<int64_t>> shapes;
  // Values of inputs that become constants. This is necessary for inputs that determine shapes.
  std::map<std::string, Tensor> constants;
  // If not null, gets a sentence for each oddity of the model that does not prevent the import: an
  // attribute that its operator does not have, an output whose type is not the declared one; and
  // for each dimension that is assumed to be 1.
  std::vector<std::string>* warnings = nullptr;
};

// Reads a network from an ONNX file of the opsets 7 to 25, and of older ones if its operators did
// not change, as a graph with the semantics of opset 25. Weights become constants; nodes that only
// compute shapes vanish. The model and files of weights beside it are mapped, so that weights
// are read when they are first used: these files must not change while the graph is used.
//
// NotFound, PermissionDenied: the file cannot be read. InvalidArgument: it is not an ONNX model, is
// truncated or contradicts itself; another dimension of an input is open. FailedPrecondition:
// shapes depend on elements that only the running network computes. Unimplemented: the model has
// operators (all are listed), attributes or types that Hone does not support, or an opset that it
// does not read. The messages begin with the path, and name the node or the tensor.
absl::StatusOr<graph::Graph> ImportOnnx(const std::string& path, const ImportOptions& options = {});

// The same for the bytes of a file. `folder`: the folder of the weights files; "" if none may be
// read.
absl::StatusOr<graph::Graph> ImportOnnxBytes(absl::string_view bytes, const std::string& folder,
                                             const ImportOptions& options = {});

// A model of which some nodes run on the host.
struct ImportedModel {
  // The outputs are those of the model, or with a tail what the tail reads and those of the model
  // that the tail does not compute.
  graph::Graph graph;
  std::shared_ptr<const HostTail> tail;  // null: the graph computes all outputs
};

// Reads a network like ImportOnnx. If the shapes of some tensors at the end of the network depend
// on computed elements, the nodes that compute and read them become the tail.
absl::StatusOr<ImportedModel> ImportOnnxWithTail(const std::string& path,
                                                 const ImportOptions& options = {});

// An input as the model declares it.
struct DeclaredInput {
  std::string name;
  std::string dtype;  // "f32"; "" for types that Hone does not have
  // Each dimension: its extent, or the name of an open one, or "" for an open one without a name.
  // nullopt: the model declares no shape.
  std::optional<std::vector<std::variant<int64_t, std::string>>> shape;
};

// The inputs of a model, without its initializers. Unlike ImportOnnx, this needs no shapes. Errors
// are those of reading the file.
absl::StatusOr<std::vector<DeclaredInput>> DeclaredInputs(const std::string& path);

// Identifies a model: the digest of its file and of the files with the weights that its outputs
// need (ExternalFilesOf). It does not depend on how this version reads a model. Errors as for
// ImportOnnx.
absl::StatusOr<Digest> DigestOfModel(const std::string& path);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_IMPORT_H_
