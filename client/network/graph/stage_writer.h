#ifndef HONE_CLIENT_NETWORK_GRAPH_STAGE_WRITER_H_
#define HONE_CLIENT_NETWORK_GRAPH_STAGE_WRITER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/network/graph/graph.h"

namespace hone::graph {

// A stage in the language of workloads: "(A, B)[i: 4, j: 8] = <value>".
struct StageText {
  std::vector<std::string> tensors;  // that it computes; two for a reduction to a tuple
  std::vector<std::string> axes;
  std::vector<int64_t> shape;
  std::string value;

  // The names of the tensors that the value reads; some may occur twice.
  std::vector<std::string> Reads() const;
  std::string ToText() const;
};

// Writes the stages of one node in the language of workloads (docs/language.md). Tensors of rank 0
// are written with one dimension of extent 1.
//
//   writer.Output(0, {"i", "j"}, absl::StrCat("max(", writer.In(0, {"i", "j"}), ", 0.0)"));
class StageWriter {
 public:
  // `inputs`: the names of the node's inputs ("" for absent ones). `outputs`: the names and types
  // of its outputs; an empty name is an output that is not wanted. `prefix` begins the names of
  // intermediate tensors. Stages are appended to `stages`; MakeGroup() removes those that no wanted
  // output needs, so an operator may write stages before it knows which are needed.
  struct Named {
    std::string name;
    TensorType type;
    int64_t bound = 0;  // see SetBound(); 0: none
  };
  StageWriter(std::vector<Named> inputs, std::vector<Named> outputs, std::string prefix,
              std::vector<StageText>* stages)
      : inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        prefix_(std::move(prefix)),
        stages_(*stages) {}

  // "A[i, j + 1]": an element of an input.
  std::string In(int input, const std::vector<std::string>& indices);
  // Declares that the elements of an input are indices from 0 to bound - 1. The inputs that tuning
  // generates keep to this range.
  void SetBound(int input, int64_t bound) { inputs_[input].bound = bound; }
  int64_t Bound(int input) const { return inputs_[input].bound; }
  const TensorType& OutputType(int output) const { return outputs_[output].type; }
  bool WantsOutput(int output) const {
    return output < static_cast<int>(outputs_.size()) && !outputs_[output].name.empty();
  }

  // Names for the axes of a tensor: {"i0", "i1"}; as many as its rank, at least one.
  static std::vector<std::string> Axes(const std::vector<int64_t>& shape,
                                       absl::string_view letter = "i");

  // Writes the stage that computes an output: "Y[i: 4, j: 8] = <value>". The value may be a
  // reduction.
  void Output(int output, const std::vector<std::string>& axes, absl::string_view value);
  // Writes a stage that computes two outputs with one reduction to a tuple. An output that is not
  // wanted becomes an intermediate tensor.
  void Outputs(int first, int second, const std::vector<std::string>& axes,
               absl::string_view value);
  // Writes an intermediate stage and returns the name of its tensor.
  std::string Stage(absl::string_view name, const std::vector<std::string>& axes,
                    const std::vector<int64_t>& shape, absl::string_view value);
  // Writes an argmax or argmin stage, which computes a tuple of a value and its index. Returns the
  // names of both tensors, or of the tensor of indices alone.
  std::pair<std::string, std::string> ExtremeStage(absl::string_view name,
                                                   const std::vector<std::string>& axes,
                                                   const std::vector<int64_t>& shape,
                                                   absl::string_view value);
  std::string PlaceStage(absl::string_view name, const std::vector<std::string>& axes,
                         const std::vector<int64_t>& shape, absl::string_view value);

  // "i: 4, j: 8", the domain of a stage or of a reduction.
  static std::string Domain(const std::vector<std::string>& axes,
                            const std::vector<int64_t>& shape);
  // A number in the language, with all digits: "0.1", "inf", "-inf". REQUIRES: it is not NaN.
  static std::string Number(double value);

 private:
  void Add(std::vector<std::string> tensors, const std::vector<std::string>& axes,
           const std::vector<int64_t>& shape, absl::string_view value);
  std::string Fresh(absl::string_view name);

  std::vector<Named> inputs_, outputs_;
  std::string prefix_;
  std::vector<StageText>& stages_;
  int fresh_ = 0;
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_STAGE_WRITER_H_
