#include "server/research/model/network/tape.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>

namespace hone::network {
namespace {

// eˣ with plain arithmetic. Vectorized and scalar code give the same bits, unlike those of a
// library, so that a result does not depend on its position in a matrix.
inline float Exp(float x) {
  x = std::min(std::max(x, -87.0f), 88.0f);
  const float rounded = x * 1.44269504f + 12582912.0f;  // 1.5·2²³: the fraction is rounded away
  const float n = rounded - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const auto exponent = std::bit_cast<int32_t>(rounded) - 0x4b400000;
  return p * std::bit_cast<float>((exponent + 127) << 23);
}

void SoftmaxInPlace(float* row, Eigen::Index count) {
  float most = row[0];
  for (Eigen::Index i = 1; i < count; ++i) most = std::max(most, row[i]);
  for (Eigen::Index i = 0; i < count; ++i) row[i] = Exp(row[i] - most);
  float sum = 0;
  for (Eigen::Index i = 0; i < count; ++i) sum += row[i];
  for (Eigen::Index i = 0; i < count; ++i) row[i] /= sum;
}

// gradient of the softmax's input, given its output p and the gradient g of the output.
void SoftmaxBack(const float* p, const float* g, Eigen::Index count, float* out) {
  float dot = 0;
  for (Eigen::Index i = 0; i < count; ++i) dot += p[i] * g[i];
  for (Eigen::Index i = 0; i < count; ++i) out[i] = p[i] * (g[i] - dot);
}

}  // namespace

void RowProduct(const Matrix& a, const Matrix& b, Matrix& out) {
  // Eigen chooses its method by the sizes. A multiple of eight rows is always computed in the same
  // way, with one sum per element.
  constexpr Eigen::Index kRows = 8, kTiny = 16;
  out.resize(a.rows(), b.cols());
  if (a.cols() + b.cols() < kTiny) {
    for (Eigen::Index r = 0; r < a.rows(); ++r) {
      for (Eigen::Index c = 0; c < b.cols(); ++c) {
        float sum = 0;
        for (Eigen::Index k = 0; k < a.cols(); ++k) sum += a(r, k) * b(k, c);
        out(r, c) = sum;
      }
    }
    return;
  }
  const Eigen::Index rest = a.rows() % kRows, whole = a.rows() - rest;
  if (whole > 0) out.topRows(whole).noalias() = a.topRows(whole) * b;
  if (rest == 0) return;
  Matrix padded = Matrix::Zero(kRows, a.cols()), product(kRows, b.cols());
  padded.topRows(rest) = a.bottomRows(rest);
  product.noalias() = padded * b;
  out.bottomRows(rest) = product.topRows(rest);
}

Var Tape::Push(Matrix value, bool constant, std::function<void(Node&)> back) {
  Node& node = nodes_.emplace_back();
  node.value = std::move(value);
  node.constant = constant || !learns_;
  if (!node.constant) node.back = [&node, back = std::move(back)] { back(node); };
  return &node;
}

Matrix& Tape::Sum(Var node) {
  if (node->gradient.size() == 0)
    node->gradient = Matrix::Zero(node->value.rows(), node->value.cols());
  return node->gradient;
}

Matrix& Tape::SumOfWeights(const Matrix& weights) {
  Matrix& sum = weights_[&weights];
  if (sum.size() == 0) sum = Matrix::Zero(weights.rows(), weights.cols());
  return sum;
}

Var Tape::Input(Matrix value, bool constant) {
  return Push(std::move(value), constant, [](Node&) {});
}

Var Tape::Affine(Var x, const Matrix& weights, const Matrix* bias) {
  Matrix out;
  RowProduct(x->value, weights, out);
  if (bias != nullptr) out.rowwise() += bias->row(0);
  return Push(std::move(out), false, [this, x, &weights, bias](Node& node) {
    const Matrix& g = node.gradient;
    SumOfWeights(weights).noalias() += x->value.transpose() * g;
    if (bias != nullptr) SumOfWeights(*bias).row(0) += g.colwise().sum();
    if (!x->constant) Sum(x).noalias() += g * weights.transpose();
  });
}

// `slope_of_result`: the derivative, as a function of the result.
template <typename Function, typename Slope>
Var Tape::Elementwise(Var x, Function function, Slope slope_of_result) {
  Matrix out(x->value.rows(), x->value.cols());
  const float* in = x->value.data();
  float* to = out.data();
  for (Eigen::Index i = 0; i < out.size(); ++i) to[i] = function(in[i]);
  return Push(std::move(out), x->constant, [x, slope_of_result](Node& node) {
    const float *value = node.value.data(), *gradient = node.gradient.data();
    float* sum = Sum(x).data();
    for (Eigen::Index i = 0; i < node.value.size(); ++i)
      sum[i] += slope_of_result(value[i]) * gradient[i];
  });
}

Var Tape::Relu(Var x) {
  return Elementwise(
      x, [](float v) { return std::max(v, 0.0f); }, [](float y) { return y > 0 ? 1.0f : 0.0f; });
}

Var Tape::Sigmoid(Var x) {
  return Elementwise(
      x, [](float v) { return 1 / (1 + Exp(-v)); }, [](float y) { return y * (1 - y); });
}

Var Tape::Tanh(Var x) {
  return Elementwise(
      x, [](float v) { return 1 - 2 / (Exp(2 * v) + 1); }, [](float y) { return 1 - y * y; });
}

Var Tape::Add(Var a, Var b) {
  return Push(a->value + b->value, a->constant && b->constant, [a, b](Node& node) {
    if (!a->constant) Sum(a) += node.gradient;
    if (!b->constant) Sum(b) += node.gradient;
  });
}

Var Tape::Subtract(Var a, Var b) {
  return Push(a->value - b->value, a->constant && b->constant, [a, b](Node& node) {
    if (!a->constant) Sum(a) += node.gradient;
    if (!b->constant) Sum(b) -= node.gradient;
  });
}

Var Tape::Multiply(Var a, Var b) {
  return Push(a->value.cwiseProduct(b->value), a->constant && b->constant, [a, b](Node& node) {
    if (!a->constant) Sum(a) += node.gradient.cwiseProduct(b->value);
    if (!b->constant) Sum(b) += node.gradient.cwiseProduct(a->value);
  });
}

Var Tape::Columns(Var x, int begin, int count) {
  return Push(x->value.middleCols(begin, count), x->constant,
              [x, begin, count](Node& node) { Sum(x).middleCols(begin, count) += node.gradient; });
}

Var Tape::Gather(Var x, std::vector<int> rows) {
  Matrix out = Matrix::Zero(static_cast<Eigen::Index>(rows.size()), x->value.cols());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= 0) out.row(static_cast<Eigen::Index>(i)) = x->value.row(rows[i]);
  }
  return Push(std::move(out), x->constant, [x, rows = std::move(rows)](Node& node) {
    Matrix& sum = Sum(x);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] >= 0) sum.row(rows[i]) += node.gradient.row(static_cast<Eigen::Index>(i));
    }
  });
}

Var Tape::ConcatenateRows(std::vector<Var> parts) { return Concatenate(std::move(parts), true); }
Var Tape::ConcatenateColumns(std::vector<Var> parts) {
  return Concatenate(std::move(parts), false);
}

Var Tape::Concatenate(std::vector<Var> parts, bool rows) {
  if (parts.size() == 1) return parts[0];
  Eigen::Index height = 0, width = 0;
  bool constant = true;
  for (const Var part : parts) {
    height = rows ? height + part->value.rows() : part->value.rows();
    width = rows ? part->value.cols() : width + part->value.cols();
    constant = constant && part->constant;
  }
  Matrix out(height, width);
  // Calls visit(part, its block of a whole matrix).
  const auto each = [rows](const std::vector<Var>& all, Matrix& whole, const auto& visit) {
    Eigen::Index row = 0, column = 0;
    for (const Var part : all) {
      visit(part, whole.block(row, column, part->value.rows(), part->value.cols()));
      (rows ? row : column) += rows ? part->value.rows() : part->value.cols();
    }
  };
  each(parts, out, [](Var part, auto block) { block = part->value; });
  return Push(std::move(out), constant, [parts = std::move(parts), each](Node& node) {
    each(parts, node.gradient, [](Var part, auto block) {
      if (!part->constant) Sum(part) += block;
    });
  });
}

Var Tape::SumGroups(Var x, std::vector<int> group, int groups) {
  Matrix out = Matrix::Zero(groups, x->value.cols());
  for (size_t i = 0; i < group.size(); ++i)
    out.row(group[i]) += x->value.row(static_cast<Eigen::Index>(i));
  return Push(std::move(out), x->constant, [x, group = std::move(group)](Node& node) {
    Matrix& sum = Sum(x);
    for (size_t i = 0; i < group.size(); ++i)
      sum.row(static_cast<Eigen::Index>(i)) += node.gradient.row(group[i]);
  });
}

Var Tape::SoftmaxRows(Var x) {
  Matrix out = x->value;
  for (Eigen::Index r = 0; r < out.rows(); ++r) SoftmaxInPlace(out.row(r).data(), out.cols());
  return Push(std::move(out), x->constant, [x](Node& node) {
    std::vector<float> slope(static_cast<size_t>(node.value.cols()));
    for (Eigen::Index r = 0; r < node.value.rows(); ++r) {
      SoftmaxBack(node.value.row(r).data(), node.gradient.row(r).data(), node.value.cols(),
                  slope.data());
      float* sum = Sum(x).row(r).data();
      for (size_t c = 0; c < slope.size(); ++c) sum[c] += slope[c];
    }
  });
}

Var Tape::OuterRows(Var a, Var b) {
  const Eigen::Index width = b->value.cols();
  Matrix out(a->value.rows(), a->value.cols() * width);
  for (Eigen::Index i = 0; i < a->value.cols(); ++i) {
    out.middleCols(i * width, width) =
        (b->value.array().colwise() * a->value.col(i).array()).matrix();
  }
  return Push(std::move(out), a->constant && b->constant, [a, b, width](Node& node) {
    for (Eigen::Index i = 0; i < a->value.cols(); ++i) {
      const auto part = node.gradient.middleCols(i * width, width);
      if (!a->constant) Sum(a).col(i) += part.cwiseProduct(b->value).rowwise().sum();
      if (!b->constant) Sum(b) += (part.array().colwise() * a->value.col(i).array()).matrix();
    }
  });
}

Var Tape::LayerNorm(Var x, const Matrix& gain, const Matrix& bias) {
  constexpr float kEpsilon = 1e-5f;
  const Eigen::Index columns = x->value.cols();
  const auto count = static_cast<float>(columns);
  auto normal = std::make_shared<Matrix>(x->value.rows(), columns);
  auto scale = std::make_shared<std::vector<float>>(static_cast<size_t>(x->value.rows()));
  Matrix out(x->value.rows(), columns);
  for (Eigen::Index r = 0; r < out.rows(); ++r) {
    float mean = 0, squares = 0;
    for (Eigen::Index c = 0; c < columns; ++c) mean += x->value(r, c);
    mean /= count;
    for (Eigen::Index c = 0; c < columns; ++c)
      squares += (x->value(r, c) - mean) * (x->value(r, c) - mean);
    const float s = 1 / std::sqrt(squares / count + kEpsilon);
    (*scale)[static_cast<size_t>(r)] = s;
    for (Eigen::Index c = 0; c < columns; ++c) {
      (*normal)(r, c) = (x->value(r, c) - mean) * s;
      out(r, c) = (*normal)(r, c) * gain(0, c) + bias(0, c);
    }
  }
  return Push(std::move(out), false, [this, x, &gain, &bias, normal, scale, count](Node& node) {
    const Matrix& g = node.gradient;
    SumOfWeights(gain).row(0) += g.cwiseProduct(*normal).colwise().sum();
    SumOfWeights(bias).row(0) += g.colwise().sum();
    if (x->constant) return;
    Matrix& sum = Sum(x);
    for (Eigen::Index r = 0; r < g.rows(); ++r) {
      float total = 0, along = 0;
      for (Eigen::Index c = 0; c < g.cols(); ++c) {
        total += g(r, c) * gain(0, c);
        along += g(r, c) * gain(0, c) * (*normal)(r, c);
      }
      for (Eigen::Index c = 0; c < g.cols(); ++c) {
        sum(r, c) += (*scale)[static_cast<size_t>(r)] *
                     (g(r, c) * gain(0, c) - (total + along * (*normal)(r, c)) / count);
      }
    }
  });
}

Var Tape::Attention(Var query, Var key, Var value, std::vector<int> begin, int heads) {
  const Eigen::Index width = query->value.cols() / heads;
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  Matrix out(query->value.rows(), query->value.cols());
  auto shares = std::make_shared<std::vector<Matrix>>();  // per sequence and head
  Matrix share, part;
  for (size_t s = 0; s + 1 < begin.size(); ++s) {
    const Eigen::Index first = begin[s], count = begin[s + 1] - begin[s];
    for (int h = 0; h < heads; ++h) {
      const auto of = [&](Var v) { return v->value.block(first, h * width, count, width); };
      share.resize(count, count);
      share.noalias() = of(query) * of(key).transpose();
      share *= scale;
      for (Eigen::Index r = 0; r < count; ++r) SoftmaxInPlace(share.row(r).data(), count);
      part.resize(count, width);
      part.noalias() = share * of(value);
      out.block(first, h * width, count, width) = part;
      if (learns_) shares->push_back(share);
    }
  }
  return Push(
      std::move(out), false,
      [query, key, value, begin = std::move(begin), heads, width, scale, shares](Node& node) {
        Matrix slope, inner;
        size_t at = 0;
        for (size_t s = 0; s + 1 < begin.size(); ++s) {
          const Eigen::Index first = begin[s], count = begin[s + 1] - begin[s];
          for (int h = 0; h < heads; ++h) {
            const Matrix& p = (*shares)[at++];
            const auto of = [&](const Matrix& m) {
              return m.block(first, h * width, count, width);
            };
            const auto add = [&](Var v, const Matrix& more) {
              if (!v->constant) Sum(v).block(first, h * width, count, width) += more;
            };
            add(value, p.transpose() * of(node.gradient));
            slope = of(node.gradient) * of(value->value).transpose();
            inner.resize(count, count);
            for (Eigen::Index r = 0; r < count; ++r)
              SoftmaxBack(p.row(r).data(), slope.row(r).data(), count, inner.row(r).data());
            inner *= scale;
            add(query, inner * of(key->value));
            add(key, inner.transpose() * of(query->value));
          }
        }
      });
}

void Tape::Backward(Var result, Matrix gradient) {
  result->gradient = std::move(gradient);
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    if (node->back != nullptr && node->gradient.size() > 0) node->back();
  }
}

const Matrix* Tape::GradientOf(const Matrix& weights) const {
  const auto found = weights_.find(&weights);
  return found == weights_.end() ? nullptr : &found->second;
}

}  // namespace hone::network
