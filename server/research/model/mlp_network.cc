#include "server/research/model/mlp_network.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"

namespace hone::cost_model {
namespace {

constexpr int kLayers = 5;

void Rectify(Matrix& m) {
  for (float& value : m.values) value = std::max(value, 0.0f);
}

// Sets the gradient to 0 where the rectifier's output is 0.
void BlockGradient(const Matrix& output, Matrix& gradient) {
  for (size_t i = 0; i < gradient.values.size(); ++i) {
    if (output.values[i] <= 0) gradient.values[i] = 0;
  }
}

Matrix Affine(const Matrix& in, const Matrix& weights, const Matrix& bias) {
  Matrix out(in.rows, weights.columns);
  for (int r = 0; r < out.rows; ++r) std::copy_n(bias.values.data(), out.columns, out.row(r));
  AddProduct(in, weights, out);
  return out;
}

void Add(const Matrix& a, Matrix& sum) {
  for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += a.values[i];
}

}  // namespace

MlpNetwork::MlpNetwork(int inputs, int hidden, uint64_t seed) {
  for (int l = 0; l < kLayers; ++l) {
    const int in = l == 0 ? inputs : hidden;
    const int out = l == kLayers - 1 ? 1 : hidden;
    Layer layer{Matrix(in, out), Matrix(1, out)};
    Rng rng(seed, 0x6d6c70, l);
    const double bound = std::sqrt(6.0 / std::max(1, in)) * (l == kLayers - 1 ? 0.1 : 1.0);
    for (float& weight : layer.weights.values)
      weight = static_cast<float>((2 * rng.Uniform() - 1) * bound);
    layers_.push_back(std::move(layer));
  }
}

std::vector<Matrix*> MlpNetwork::Parameters() {
  std::vector<Matrix*> parameters;
  for (Layer& layer : layers_) {
    parameters.push_back(&layer.weights);
    parameters.push_back(&layer.bias);
  }
  return parameters;
}

void MlpNetwork::Forward(absl::Span<const int32_t> row_begin, Activations& a) const {
  const auto layer = [&](int l, const Matrix& in) {
    return Affine(in, layers_[l].weights, layers_[l].bias);
  };
  a.encoded1 = layer(0, a.rows);
  Rectify(a.encoded1);
  a.encoded2 = layer(1, a.encoded1);
  Rectify(a.encoded2);
  const int candidates = static_cast<int>(row_begin.size()) - 1;
  a.summed = Matrix(candidates, a.encoded2.columns);
  for (int i = 0; i < candidates; ++i) {
    float* sum = a.summed.row(i);
    for (int32_t r = row_begin[i]; r < row_begin[i + 1]; ++r) {
      const float* row = a.encoded2.row(r);
      for (int c = 0; c < a.summed.columns; ++c) sum[c] += row[c];
    }
  }
  a.hidden1 = layer(2, a.summed);
  Rectify(a.hidden1);
  a.residual1 = a.summed;
  Add(a.hidden1, a.residual1);
  a.hidden2 = layer(3, a.residual1);
  Rectify(a.hidden2);
  a.residual2 = a.residual1;
  Add(a.hidden2, a.residual2);
  const Matrix out = layer(4, a.residual2);
  a.scores.assign(out.values.begin(), out.values.end());
}

std::vector<Matrix> MlpNetwork::Backward(absl::Span<const int32_t> row_begin, const Activations& a,
                                         absl::Span<const double> gradient) const {
  std::vector<Matrix> result(2 * kLayers);
  // Computes the gradient of the layer's parameters and, if requested, of its input.
  const auto back = [&](int l, const Matrix& in, const Matrix& out_gradient, Matrix* in_gradient) {
    const Layer& layer = layers_[l];
    Matrix& weights = result[2 * l] = Matrix(layer.weights.rows, layer.weights.columns);
    Matrix& bias = result[2 * l + 1] = Matrix(1, layer.bias.columns);
    AddTransposedProduct(in, out_gradient, weights);
    for (int r = 0; r < out_gradient.rows; ++r) {
      for (int c = 0; c < bias.columns; ++c) bias.values[c] += out_gradient.row(r)[c];
    }
    if (in_gradient != nullptr) AddProduct(out_gradient, Transposed(layer.weights), *in_gradient);
  };
  const int candidates = a.summed.rows, hidden = a.summed.columns;
  Matrix scores(candidates, 1);
  for (int i = 0; i < candidates; ++i) scores.values[i] = static_cast<float>(gradient[i]);
  Matrix flow(candidates, hidden);  // gradient with respect to the current layer
  back(4, a.residual2, scores, &flow);
  Matrix inner = flow;
  BlockGradient(a.hidden2, inner);
  back(3, a.residual1, inner, &flow);
  inner = flow;
  BlockGradient(a.hidden1, inner);
  back(2, a.summed, inner, &flow);
  Matrix encoded2(a.rows.rows, hidden);
  for (int i = 0; i < candidates; ++i) {
    for (int32_t r = row_begin[i]; r < row_begin[i + 1]; ++r)
      std::copy_n(flow.row(i), hidden, encoded2.row(r));
  }
  BlockGradient(a.encoded2, encoded2);
  Matrix encoded1(a.rows.rows, hidden);
  back(1, a.encoded1, encoded2, &encoded1);
  BlockGradient(a.encoded1, encoded1);
  back(0, a.rows, encoded1, nullptr);
  return result;
}

void MlpNetwork::Serialize(ByteWriter& writer) const {
  writer.Add<uint32_t>(layers_.empty() ? 0 : layers_[0].bias.columns);
  for (const Layer& layer : layers_) {
    for (const float weight : layer.weights.values) writer.Add(weight);
    for (const float bias : layer.bias.values) writer.Add(bias);
  }
}

absl::StatusOr<MlpNetwork> MlpNetwork::Parse(ByteReader& reader, int inputs) {
  HONE_ASSIGN_OR_RETURN(const uint32_t hidden, reader.Read<uint32_t>());
  if (hidden == 0) return MlpNetwork();
  const uint64_t least = (uint64_t{hidden} * inputs + 3ull * hidden * hidden) * sizeof(float);
  if (hidden > 4096 || least > reader.remaining())
    return absl::InvalidArgumentError(absl::StrCat("truncated: a network of width ", hidden));
  MlpNetwork network(inputs, static_cast<int>(hidden), 0);
  for (Matrix* parameter : network.Parameters()) {
    for (float& value : parameter->values) {
      HONE_RETURN_IF_ERROR(reader.Read(value));
      if (!std::isfinite(value))
        return absl::InvalidArgumentError("a weight of the network is not finite");
    }
  }
  return network;
}

void Adam::Step(absl::Span<Matrix* const> parameters, absl::Span<const Matrix> gradients,
                double learning_rate) {
  constexpr float kFirst = 0.9f, kSecond = 0.999f, kEpsilon = 1e-8f;
  if (first_.empty()) {
    for (const Matrix& gradient : gradients) {
      first_.emplace_back(gradient.rows, gradient.columns);
      second_.emplace_back(gradient.rows, gradient.columns);
    }
  }
  ++steps_;
  double squares = 0;
  for (const Matrix& gradient : gradients) {
    for (const float value : gradient.values) squares += double{value} * value;
  }
  const auto clip =
      static_cast<float>(std::min(1.0, largest_gradient_ / std::max(std::sqrt(squares), 1e-12)));
  const auto decay = static_cast<float>(weight_decay_);
  const auto rate = static_cast<float>(learning_rate * std::sqrt(1 - std::pow(kSecond, steps_)) /
                                       (1 - std::pow(kFirst, steps_)));
  for (size_t p = 0; p < parameters.size(); ++p) {
    std::vector<float>& values = parameters[p]->values;
    for (size_t i = 0; i < values.size(); ++i) {
      const float g = gradients[p].values[i] * clip + decay * values[i];
      float& m = first_[p].values[i];
      float& v = second_[p].values[i];
      m = kFirst * m + (1 - kFirst) * g;
      v = kSecond * v + (1 - kSecond) * g * g;
      values[i] -= rate * m / (std::sqrt(v) + kEpsilon);
    }
  }
}

}  // namespace hone::cost_model
