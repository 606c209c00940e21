#ifndef HONE_TESTS_CLIENT_NETWORK_GRAPH_PADDED_MODEL_H_
#define HONE_TESTS_CLIENT_NETWORK_GRAPH_PADDED_MODEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/input_masks.h"
#include "client/network/graph/samples.h"

namespace hone::graph {

// ONNX's numbers of element types.
enum OnnxType { kTypeF32 = 1, kTypeI32 = 6, kTypeI64 = 7, kTypeBool = 9, kTypeF64 = 11 };

// A model as text (tests/client/network/onnx/model_text.h) with an open dimension N, and what is
// proven of the values below `size` if they are padded to it.
class PaddedModel {
 public:
  // The status is that of an import or of the proof.
  static absl::StatusOr<PaddedModel> Of(const std::string& text, int64_t size = 4, int opset = 17);

  const std::vector<InputMask>& masks() const { return masks_; }

  // Interprets the network for each value below `size` twice, without padding and padded as the
  // runtime does it, with random inputs. An input named "mask" has zeros and ones, and shows what
  // InputMask::needs says. Whole numbers are from 0 to 9. The error names the value and the output
  // that differs.
  absl::Status CompareRuns(int seed) const;

 private:
  absl::Status CompareRun(int64_t value, int seed) const;

  std::map<int64_t, Graph> graphs_;  // by value
  int64_t size_ = 0;
  SampleAxes axes_;
  std::vector<InputMask> masks_;
};

// CompareRuns() for several seeds.
absl::Status RunsArePadded(const PaddedModel& model);

}  // namespace hone::graph

#endif  // HONE_TESTS_CLIENT_NETWORK_GRAPH_PADDED_MODEL_H_
