#ifndef HONE_SERVER_COST_MODEL_PUBLISHED_MLP_NETWORK_H_
#define HONE_SERVER_COST_MODEL_PUBLISHED_MLP_NETWORK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/cost_model/byte_io.h"
#include "server/cost_model/dense.h"

namespace hone::cost_model {

// TenSet's network (Zheng et al., NeurIPS 2021): every row through an encoder of two layers, the
// sum over a candidate's rows, two layers with a residual connection, one output. Rectified linear
// throughout. Copyable; one thread at a time trains, Forward may run in several.
class MlpNetwork {
 public:
  // What Forward leaves for Backward.
  struct Activations {
    Matrix rows, encoded1, encoded2;  // per row
    Matrix summed, residual1,
        residual2;            // per candidate: before the residual layers, their outputs
    Matrix hidden1, hidden2;  // what those layers add
    std::vector<double> scores;
  };

  // Without parameters.
  MlpNetwork() = default;
  // Weights drawn uniformly, in the range that keeps the variance of a layer (He et al.).
  MlpNetwork(int inputs, int hidden, uint64_t seed);

  bool empty() const { return layers_.empty(); }

  // `activations.rows` is set; candidate i owns its rows [row_begin[i], row_begin[i + 1]), from
  // row_begin[0] = 0. Fills the rest.
  void Forward(absl::Span<const int32_t> row_begin, Activations& activations) const;

  // The gradient of every parameter, in the order of Parameters, from that of the scores.
  std::vector<Matrix> Backward(absl::Span<const int32_t> row_begin, const Activations& activations,
                               absl::Span<const double> gradient) const;
  std::vector<Matrix*> Parameters();

  // The binary form inside a model file, and back. InvalidArgument: truncated, not finite, or not
  // of that many inputs.
  void Serialize(ByteWriter& writer) const;
  static absl::StatusOr<MlpNetwork> Parse(ByteReader& reader, int inputs);

 private:
  struct Layer {
    Matrix weights;  // inputs × outputs
    Matrix bias;     // 1 × outputs
  };
  std::vector<Layer> layers_;  // two of the encoder, two residual ones, the output
};

// Adam (Kingma and Ba, ICLR 2015) with its usual constants over a fixed list of parameters.
class Adam {
 public:
  Adam(double weight_decay, double largest_gradient)
      : weight_decay_(weight_decay), largest_gradient_(largest_gradient) {}

  // One step. The gradients are scaled down together where their norm is above the largest.
  // REQUIRES the same sizes in every call.
  void Step(absl::Span<Matrix* const> parameters, absl::Span<const Matrix> gradients,
            double learning_rate);

 private:
  const double weight_decay_, largest_gradient_;
  int steps_ = 0;
  std::vector<Matrix> first_, second_;  // moments
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_PUBLISHED_MLP_NETWORK_H_
