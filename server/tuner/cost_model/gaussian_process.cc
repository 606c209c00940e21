#include "server/tuner/cost_model/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hone::cost_model {
namespace {

double Dot(absl::Span<const double> a, absl::Span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

Separation Between(const KernelInput& a, const KernelInput& b) {
  Separation apart;
  const size_t numbers = std::min(a.numbers.size(), b.numbers.size());
  double sums[4] = {};  // four sums, so additions overlap
  for (size_t i = 0; i < numbers; ++i) {
    const double difference = a.numbers[i] - b.numbers[i];
    sums[i % 4] += difference * difference;
  }
  apart.squares = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  const size_t choices = std::min(a.choices.size(), b.choices.size());
  for (size_t i = 0; i < choices; ++i) apart.differing += a.choices[i] != b.choices[i];
  if (choices > 0) apart.differing /= static_cast<double>(choices);
  return apart;
}

double Kernel::operator()(const Separation& apart) const {
  const double squares = apart.squares / (length * length);
  const double scale = deviation * deviation, choices = hamming * apart.differing;
  if (shape == Shape::kRbf) return scale * std::exp(-0.5 * squares - choices);
  const double r = std::sqrt(5 * squares);
  return scale * (1 + r + r * r / 3) * std::exp(-r - choices);
}

void Observations::Add(KernelInput input, double value) {
  inputs_.push_back(std::move(input));
  values_.push_back(value);
  for (const KernelInput& other : inputs_) apart_.push_back(Between(inputs_.back(), other));
}

std::vector<double> Observations::Covariances(const Kernel& kernel) const {
  std::vector<double> covariances;
  covariances.reserve(apart_.size());
  for (const Separation& apart : apart_) covariances.push_back(kernel(apart));
  return covariances;
}

Observations::Evidence Observations::EvidenceOf(absl::Span<const double> covariances,
                                                double deviation, double noise) const {
  const double variance = deviation * deviation;
  Cholesky factor;
  for (size_t i = 0, at = 0; i < values_.size(); at += ++i) {
    const absl::Span<const double> row = covariances.subspan(at, i);
    factor.Append({row.begin(), row.end()}, covariances[at + i] + noise * noise / variance);
  }
  std::vector<double> white = values_;
  factor.SolveLower(absl::MakeSpan(white));
  return {Dot(white, white) / variance, factor.LogDeterminant() + size() * std::log(variance)};
}

std::vector<double> GaussianProcess::Covariances(const KernelInput& input) const {
  std::vector<double> covariances;
  covariances.reserve(inputs_.size() + 1);
  for (const KernelInput& other : inputs_) covariances.push_back(kernel_(input, other));
  return covariances;
}

std::vector<double> GaussianProcess::Whitened(const KernelInput& input) const {
  std::vector<double> covariances = Covariances(input);
  factor_.SolveLower(absl::MakeSpan(covariances));
  return covariances;
}

void GaussianProcess::Add(KernelInput input, double value) {
  const double own = kernel_(input, input) + kernel_.noise * kernel_.noise;
  const std::vector<double> row = factor_.Append(Covariances(input), own);
  white_.push_back((value - Dot(white_, row)) / row.back());
  inputs_.push_back(std::move(input));
}

GaussianProcess::Marginal GaussianProcess::At(const KernelInput& input) const {
  const std::vector<double> row = Whitened(input);
  const double variance = kernel_(input, input) - Dot(row, row);
  return {Dot(row, white_), std::sqrt(std::max(variance, 0.0))};
}

GaussianProcess::Joint GaussianProcess::At(absl::Span<const KernelInput> inputs) const {
  Joint joint;
  // Without it, rounding and equal inputs would make the covariance singular.
  const double jitter = 1e-8 * kernel_.deviation * kernel_.deviation + 1e-12;
  std::vector<std::vector<double>> rows;
  rows.reserve(inputs.size());
  for (const KernelInput& input : inputs) {
    const std::vector<double>& row = rows.emplace_back(Whitened(input));
    joint.mean.push_back(Dot(row, white_));
    std::vector<double> covariances;
    for (size_t j = 0; j + 1 < rows.size(); ++j)
      covariances.push_back(kernel_(input, inputs[j]) - Dot(row, rows[j]));
    const double own = std::max(kernel_(input, input) - Dot(row, row), 0.0);
    joint.factor.Append(std::move(covariances), own + jitter);
  }
  return joint;
}

double GaussianProcess::Squares() const { return Dot(white_, white_); }

std::vector<double> GaussianProcess::Weights() const {
  std::vector<double> weights = white_;
  factor_.SolveUpper(absl::MakeSpan(weights));
  return weights;
}

std::vector<double> GaussianProcess::Precision() const {
  const size_t n = inputs_.size();
  std::vector<double> inverse(n * n, 0.0);
  for (size_t i = 0; i < n; ++i) {
    const auto row = absl::MakeSpan(inverse).subspan(i * n, n);
    row[i] = 1;
    factor_.SolveLower(row);
    factor_.SolveUpper(row);
  }
  return inverse;
}

}  // namespace hone::cost_model
