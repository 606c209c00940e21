#ifndef HONE_SERVER_RESEARCH_MODEL_MLP_NETWORK_H_
#define HONE_SERVER_RESEARCH_MODEL_MLP_NETWORK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/tuner/cost_model/byte_io.h"
#include "server/tuner/cost_model/dense.h"

namespace hone::cost_model {

// TenSet's network (Zheng et al., NeurIPS 2021): an encoder of two layers for each row, the sum
// over a candidate's rows, two layers with a residual connection, and one output. All activations
// are rectified linear. Copyable. Training uses one thread at a time; Forward may run in several.
class MlpNetwork {
 public:
  // The intermediate results of Forward, which Backward needs.
  struct Activations {
    Matrix rows, encoded1, encoded2;  // per row
    Matrix summed, residual1,
        residual2;            // per candidate: before and after each residual layer
    Matrix hidden1, hidden2;  // the summands of those layers
    std::vector<double> scores;
  };

  // A network without parameters.
  MlpNetwork() = default;
  // Draws the weights uniformly from the range that preserves the variance of a layer (He et al.).
  MlpNetwork(int inputs, int hidden, uint64_t seed);

  bool empty() const { return layers_.empty(); }

  // Computes all other activations from `activations.rows`. Candidate i owns the rows
  // [row_begin[i], row_begin[i + 1]); row_begin[0] is 0.
  void Forward(absl::Span<const int32_t> row_begin, Activations& activations) const;

  // Returns the gradient of every parameter, in the order of Parameters(), given the gradient of
  // the scores.
  std::vector<Matrix> Backward(absl::Span<const int32_t> row_begin, const Activations& activations,
                               absl::Span<const double> gradient) const;
  std::vector<Matrix*> Parameters();

  // Convert to and from the binary form inside a model file. InvalidArgument: truncated, not
  // finite, or another number of inputs.
  void Serialize(ByteWriter& writer) const;
  static absl::StatusOr<MlpNetwork> Parse(ByteReader& reader, int inputs);

 private:
  struct Layer {
    Matrix weights;  // inputs × outputs
    Matrix bias;     // 1 × outputs
  };
  std::vector<Layer> layers_;  // two encoder, two residual, one output layer
};

// Adam (Kingma and Ba, ICLR 2015) with its usual constants over a fixed list of parameters.
class Adam {
 public:
  Adam(double weight_decay, double largest_gradient)
      : weight_decay_(weight_decay), largest_gradient_(largest_gradient) {}

  // Takes one step. All gradients are scaled down if their norm exceeds the largest. REQUIRES: the
  // same sizes in every call.
  void Step(absl::Span<Matrix* const> parameters, absl::Span<const Matrix> gradients,
            double learning_rate);

 private:
  const double weight_decay_, largest_gradient_;
  int steps_ = 0;
  std::vector<Matrix> first_, second_;  // moments
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_RESEARCH_MODEL_MLP_NETWORK_H_
