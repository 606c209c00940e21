#ifndef HONE_CLIENT_NETWORK_ONNX_HOST_TAIL_H_
#define HONE_CLIENT_NETWORK_ONNX_HOST_TAIL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/network/onnx/tensor_file.h"

namespace hone::onnx {

// The end of a model whose nodes compute as many elements as the elements of computed tensors say:
// NonMaxSuppression, NonZero, Unique and Compress of what the network computes, and every node that
// reads their results. It runs on the host: for each run the nodes are read again, with their
// inputs as constants, and folded. Thread-safe.
class HostTail {
 public:
  struct Model;  // in import_model.h

  explicit HostTail(std::unique_ptr<const Model> model);
  ~HostTail();

  // The names of the model's outputs.
  const std::vector<std::string>& outputs() const;
  // Its nodes in the order in which they run: "node 'nms' (NonMaxSuppression)".
  const std::vector<std::string>& nodes() const;
  // "node 'nms' (NonMaxSuppression) and the 5 nodes that follow from it run on the host".
  std::string Describe() const;

  // The tail as a model for other programs: its inputs are the outputs of the graph and its outputs
  // those of the whole model. `fixes_shapes` false: the extents of its inputs are left open, for
  // graphs of several sizes. Errors: files beside the model cannot
  // be read. ResourceExhausted: it is larger than a model file may be.
  absl::StatusOr<std::string> ToModel(bool fixes_shapes) const;

  // Returns the outputs of the model. `computed`: the elements of the outputs of the graph, in
  // their order. Errors are those of reading the nodes, which may not fit the shapes of their
  // inputs.
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const std::string> computed) const;

 private:
  const std::unique_ptr<const Model> model_;
};

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_HOST_TAIL_H_
