#ifndef HONE_SERVER_RESEARCH_MODEL_NETWORK_LAYERS_H_
#define HONE_SERVER_RESEARCH_MODEL_NETWORK_LAYERS_H_

#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/rng.h"
#include "server/research/model/network/tape.h"
#include "server/tuner/cost_model/byte_io.h"

namespace hone::network {

// The weights of a network, in the order in which its layers were made. Their addresses do not
// change. Small initial weights are drawn from the seed.
class Weights {
 public:
  explicit Weights(uint64_t seed) : rng_(seed, 0x6c61796572) {}
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  // Draws uniformly from [-bound, bound].
  const Matrix& Draw(int rows, int columns, double bound);
  const Matrix& Fill(int rows, int columns, float value);

  std::deque<Matrix>& all() { return all_; }
  // Convert to and from a binary form. InvalidArgument: truncated, or a weight is not finite.
  void Serialize(cost_model::ByteWriter& writer) const;
  absl::Status Parse(cost_model::ByteReader& reader);

 private:
  Rng rng_;
  std::deque<Matrix> all_;
};

// The layers below refer to their weights, which must outlive them.

class Linear {
 public:
  // `gain`: of the bound √(3 / inputs) with which a linear layer keeps the variance. √2 suits a
  // rectified layer (He et al., ICCV 2015).
  Linear(Weights& weights, int inputs, int outputs, double gain = 1);
  Var operator()(Tape& tape, Var x) const { return tape.Affine(x, *weights_, bias_); }

 private:
  const Matrix *weights_, *bias_;
};

// Rectified linear layers of these widths, one after the other.
class Stack {
 public:
  Stack(Weights& weights, int inputs, const std::vector<int>& widths);
  Var operator()(Tape& tape, Var x) const;

 private:
  std::vector<Linear> layers_;
};

// x + relu(linear(x)), `count` times.
class Residual {
 public:
  Residual(Weights& weights, int width, int count);
  Var operator()(Tape& tape, Var x) const;

 private:
  std::vector<Linear> layers_;
};

class LayerNorm {
 public:
  LayerNorm(Weights& weights, int width)
      : gain_(&weights.Fill(1, width, 1)), bias_(&weights.Fill(1, width, 0)) {}
  Var operator()(Tape& tape, Var x) const { return tape.LayerNorm(x, *gain_, *bias_); }

 private:
  const Matrix *gain_, *bias_;
};

// Multi-head self-attention (Vaswani et al., NeurIPS 2017), without the residual connection.
class SelfAttention {
 public:
  // REQUIRES: `heads` divides the width.
  SelfAttention(Weights& weights, int width, int heads);
  // Sequence i has the rows [begin[i], begin[i + 1]) of x.
  Var operator()(Tape& tape, Var x, const std::vector<int>& begin) const;

 private:
  const int heads_;
  const Linear query_, key_, value_, output_;
};

// A gated recurrent unit (Cho et al., EMNLP 2014), with a bias inside the reset gate, as in cuDNN
// and PyTorch.
class GruCell {
 public:
  GruCell(Weights& weights, int inputs, int width);
  // Returns the new state, a row per row of the input.
  Var operator()(Tape& tape, Var x, Var state) const;

 private:
  const int width_;
  const Linear input_, state_;
};

// A cell of long short-term memory (Hochreiter and Schmidhuber, 1997; gates in PyTorch's order:
// input, forget, cell, output).
class LstmCell {
 public:
  struct State {
    Var hidden, cell;
  };
  LstmCell(Weights& weights, int inputs, int width);
  State operator()(Tape& tape, Var x, const State& state) const;

 private:
  const int width_;
  const Linear input_, hidden_;
};

// Runs a cell over the rows of each sequence, from the first to the last. Returns the hidden state
// after each row. All sequences advance together.
Var RunLstm(Tape& tape, const LstmCell& cell, int width, Var x, const std::vector<int>& begin);

// Adam (Kingma and Ba, ICLR 2015) with its usual constants.
class Adam {
 public:
  Adam(Weights& weights, double weight_decay, double largest_gradient)
      : weights_(weights), weight_decay_(weight_decay), largest_gradient_(largest_gradient) {}

  // Takes one step with the gradients of a tape. All are scaled down if their norm exceeds the
  // largest.
  void Step(const Tape& tape, double learning_rate);

 private:
  Weights& weights_;
  const double weight_decay_, largest_gradient_;
  int steps_ = 0;
  std::vector<Matrix> first_, second_;  // moments
};

}  // namespace hone::network

#endif  // HONE_SERVER_RESEARCH_MODEL_NETWORK_LAYERS_H_
