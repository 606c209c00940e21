#include "server/research/model/network/layers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/base/status_macros.h"

namespace hone::network {
namespace {

constexpr double kRectifiedGain = 1.41421356;

Linear Rectified(Weights& weights, int inputs, int outputs) {
  return Linear(weights, inputs, outputs, kRectifiedGain);
}

}  // namespace

const Matrix& Weights::Draw(int rows, int columns, double bound) {
  Matrix& matrix = all_.emplace_back(rows, columns);
  for (Eigen::Index i = 0; i < matrix.size(); ++i)
    matrix.data()[i] = static_cast<float>((2 * rng_.Uniform() - 1) * bound);
  return matrix;
}

const Matrix& Weights::Fill(int rows, int columns, float value) {
  return all_.emplace_back(Matrix::Constant(rows, columns, value));
}

void Weights::Serialize(cost_model::ByteWriter& writer) const {
  for (const Matrix& matrix : all_) {
    for (Eigen::Index i = 0; i < matrix.size(); ++i) writer.Add(matrix.data()[i]);
  }
}

absl::Status Weights::Parse(cost_model::ByteReader& reader) {
  for (Matrix& matrix : all_) {
    for (Eigen::Index i = 0; i < matrix.size(); ++i) {
      HONE_RETURN_IF_ERROR(reader.Read(matrix.data()[i]));
      if (!std::isfinite(matrix.data()[i]))
        return absl::InvalidArgumentError("a weight of the network is not finite");
    }
  }
  return absl::OkStatus();
}

Linear::Linear(Weights& weights, int inputs, int outputs, double gain)
    : weights_(&weights.Draw(inputs, outputs, gain * std::sqrt(3.0 / std::max(1, inputs)))),
      bias_(&weights.Fill(1, outputs, 0)) {}

Stack::Stack(Weights& weights, int inputs, const std::vector<int>& widths) {
  for (const int width : widths) {
    layers_.push_back(Rectified(weights, inputs, width));
    inputs = width;
  }
}

Var Stack::operator()(Tape& tape, Var x) const {
  for (const Linear& layer : layers_) x = tape.Relu(layer(tape, x));
  return x;
}

Residual::Residual(Weights& weights, int width, int count) {
  for (int i = 0; i < count; ++i) layers_.push_back(Rectified(weights, width, width));
}

Var Residual::operator()(Tape& tape, Var x) const {
  for (const Linear& layer : layers_) x = tape.Add(x, tape.Relu(layer(tape, x)));
  return x;
}

SelfAttention::SelfAttention(Weights& weights, int width, int heads)
    : heads_(heads),
      query_(weights, width, width),
      key_(weights, width, width),
      value_(weights, width, width),
      output_(weights, width, width) {}

Var SelfAttention::operator()(Tape& tape, Var x, const std::vector<int>& begin) const {
  return output_(tape,
                 tape.Attention(query_(tape, x), key_(tape, x), value_(tape, x), begin, heads_));
}

GruCell::GruCell(Weights& weights, int inputs, int width)
    : width_(width), input_(weights, inputs, 3 * width), state_(weights, width, 3 * width) {}

Var GruCell::operator()(Tape& tape, Var x, Var state) const {
  const Var from_input = input_(tape, x), from_state = state_(tape, state);
  const auto part = [&](Var gates, int i) { return tape.Columns(gates, i * width_, width_); };
  const auto gate = [&](int i) {
    return tape.Sigmoid(tape.Add(part(from_input, i), part(from_state, i)));
  };
  const Var reset = gate(0), update = gate(1);
  const Var fresh =
      tape.Tanh(tape.Add(part(from_input, 2), tape.Multiply(reset, part(from_state, 2))));
  return tape.Add(fresh, tape.Multiply(update, tape.Subtract(state, fresh)));
}

LstmCell::LstmCell(Weights& weights, int inputs, int width)
    : width_(width), input_(weights, inputs, 4 * width), hidden_(weights, width, 4 * width) {}

LstmCell::State LstmCell::operator()(Tape& tape, Var x, const State& state) const {
  const Var gates = tape.Add(input_(tape, x), hidden_(tape, state.hidden));
  const auto part = [&](int i) { return tape.Columns(gates, i * width_, width_); };
  const Var in = tape.Sigmoid(part(0)), forget = tape.Sigmoid(part(1)), out = tape.Sigmoid(part(3));
  const Var cell =
      tape.Add(tape.Multiply(forget, state.cell), tape.Multiply(in, tape.Tanh(part(2))));
  return {tape.Multiply(out, tape.Tanh(cell)), cell};
}

Var RunLstm(Tape& tape, const LstmCell& cell, int width, Var x, const std::vector<int>& begin) {
  const auto sequences = static_cast<int>(begin.size()) - 1;
  const auto length = [&](int s) { return begin[s + 1] - begin[s]; };
  // The longest sequences first, so that those that still run are the first ones.
  std::vector<int> order(static_cast<size_t>(sequences));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return length(a) > length(b); });
  int running = sequences;
  while (running > 0 && length(order[running - 1]) == 0) --running;
  LstmCell::State state = {tape.Input(Matrix::Zero(running, width)),
                           tape.Input(Matrix::Zero(running, width))};
  std::vector<Var> steps;
  std::vector<int> position(static_cast<size_t>(begin.back()));  // of each row in `steps`
  for (int t = 0, done = 0; running > 0; ++t) {
    std::vector<int> rows, kept(static_cast<size_t>(running));
    for (int i = 0; i < running; ++i) {
      rows.push_back(begin[order[i]] + t);
      position[rows.back()] = done + i;
    }
    std::iota(kept.begin(), kept.end(), 0);
    if (state.hidden->value.rows() != running)
      state = {tape.Gather(state.hidden, kept), tape.Gather(state.cell, kept)};
    state = cell(tape, tape.Gather(x, std::move(rows)), state);
    steps.push_back(state.hidden);
    done += running;
    while (running > 0 && length(order[running - 1]) == t + 1) --running;
  }
  return tape.Gather(tape.ConcatenateRows(std::move(steps)), std::move(position));
}

void Adam::Step(const Tape& tape, double learning_rate) {
  constexpr float kFirst = 0.9f, kSecond = 0.999f, kEpsilon = 1e-8f;
  std::deque<Matrix>& all = weights_.all();
  if (first_.empty()) {
    for (const Matrix& matrix : all) {
      first_.push_back(Matrix::Zero(matrix.rows(), matrix.cols()));
      second_.push_back(first_.back());
    }
  }
  ++steps_;
  double squares = 0;
  for (const Matrix& matrix : all) {
    if (const Matrix* gradient = tape.GradientOf(matrix); gradient != nullptr)
      squares += static_cast<double>(gradient->squaredNorm());
  }
  const auto clip =
      static_cast<float>(std::min(1.0, largest_gradient_ / std::max(std::sqrt(squares), 1e-12)));
  const auto decay = static_cast<float>(weight_decay_);
  const auto rate = static_cast<float>(learning_rate * std::sqrt(1 - std::pow(kSecond, steps_)) /
                                       (1 - std::pow(kFirst, steps_)));
  for (size_t p = 0; p < all.size(); ++p) {
    const Matrix* gradient = tape.GradientOf(all[p]);
    if (gradient == nullptr) continue;
    for (Eigen::Index i = 0; i < all[p].size(); ++i) {
      float& value = all[p].data()[i];
      float &m = first_[p].data()[i], &v = second_[p].data()[i];
      const float g = gradient->data()[i] * clip + decay * value;
      m = kFirst * m + (1 - kFirst) * g;
      v = kSecond * v + (1 - kSecond) * g * g;
      value -= rate * m / (std::sqrt(v) + kEpsilon);
    }
  }
}

}  // namespace hone::network
