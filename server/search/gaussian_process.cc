#include "server/search/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace hone::search {

Separation Between(const KernelInput& a, const KernelInput& b) {
  Separation apart;
  for (size_t i = 0; i < a.numbers.size() && i < b.numbers.size(); ++i)
    apart.squares += (a.numbers[i] - b.numbers[i]) * (a.numbers[i] - b.numbers[i]);
  const size_t choices = std::min(a.choices.size(), b.choices.size());
  for (size_t i = 0; i < choices; ++i) apart.differing += a.choices[i] != b.choices[i];
  if (choices > 0) apart.differing /= static_cast<double>(choices);
  return apart;
}

double Kernel::operator()(const Separation& apart) const {
  const double r = std::sqrt(5 * apart.squares) / length;
  return deviation * deviation * (1 + r + r * r / 3) * std::exp(-r - hamming * apart.differing);
}

KernelInput EmbedDecisions(const space::DesignSpace& space, absl::Span<const int64_t> decisions) {
  KernelInput input;
  const absl::StatusOr<std::vector<schedule::Site>> sites = space.Sites(decisions);
  if (!sites.ok()) return input;
  for (const schedule::Site& site : *sites) {
    const absl::Span<const int64_t> values = decisions.subspan(site.begin, site.count);
    bool numbers = true;
    if (site.kind == schedule::Site::Kind::kChoice) {
      int64_t row = 0;
      while (!std::equal(values.begin(), values.end(), site.rows.begin() + row * site.count)) ++row;
      input.choices.push_back(row);
      numbers = *std::min_element(site.rows.begin(), site.rows.end()) > 0;
    }
    for (const int64_t value : values)
      input.numbers.push_back(numbers ? std::log2(static_cast<double>(value)) : 0);
  }
  return input;
}

Eigen::VectorXd GaussianProcess::Whitened(const KernelInput& input) const {
  Eigen::VectorXd covariance(size());
  for (int i = 0; i < size(); ++i) covariance[i] = kernel_(input, inputs_[i]);
  factor_.topLeftCorner(size(), size()).triangularView<Eigen::Lower>().solveInPlace(covariance);
  return covariance;
}

void GaussianProcess::Add(KernelInput input, double value) {
  const int n = size();
  if (factor_.rows() <= n) {
    factor_.conservativeResize(2 * n + 16, 2 * n + 16);
    white_.conservativeResize(2 * n + 16);
  }
  const Eigen::VectorXd row = Whitened(input);
  const double own = kernel_(input, input) + kernel_.noise * kernel_.noise;
  const double pivot = std::sqrt(std::max(own - row.squaredNorm(), 1e-10));
  factor_.row(n).head(n) = row.transpose();
  factor_(n, n) = pivot;
  white_[n] = (value - row.dot(white_.head(n))) / pivot;
  inputs_.push_back(std::move(input));
}

GaussianProcess::Marginal GaussianProcess::At(const KernelInput& input) const {
  const double own = kernel_(input, input);
  if (size() == 0) return {0, std::sqrt(own)};
  const Eigen::VectorXd row = Whitened(input);
  return {row.dot(white_.head(size())), std::sqrt(std::max(own - row.squaredNorm(), 0.0))};
}

GaussianProcess::Joint GaussianProcess::At(absl::Span<const KernelInput> inputs) const {
  const int n = size(), m = static_cast<int>(inputs.size());
  Eigen::MatrixXd across(n, m), covariance(m, m);
  for (int j = 0; j < m; ++j) {
    for (int i = 0; i < n; ++i) across(i, j) = kernel_(inputs_[i], inputs[j]);
    for (int i = 0; i <= j; ++i)
      covariance(i, j) = covariance(j, i) = kernel_(inputs[i], inputs[j]);
  }
  Joint joint{.mean = Eigen::VectorXd::Zero(m)};
  if (n > 0) {
    factor_.topLeftCorner(n, n).triangularView<Eigen::Lower>().solveInPlace(across);
    joint.mean = across.transpose() * white_.head(n);
    covariance -= across.transpose() * across;
  }
  // Rounding and equal inputs make it singular.
  double jitter = 1e-8 * kernel_.deviation * kernel_.deviation + 1e-12;
  for (int attempt = 0; attempt < 6; ++attempt, jitter *= 100) {
    covariance.diagonal().array() += jitter;
    const Eigen::LLT<Eigen::MatrixXd> factored(covariance);
    if (factored.info() != Eigen::Success) continue;
    joint.factor = factored.matrixL();
    return joint;
  }
  joint.factor = covariance.diagonal().cwiseMax(0).cwiseSqrt().asDiagonal();
  return joint;
}

double LogLikelihood(Eigen::MatrixXd& covariance, const Eigen::VectorXd& values) {
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factored(covariance);
  if (factored.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();
  const Eigen::VectorXd white = factored.matrixL().solve(values);
  return -0.5 * white.squaredNorm() - covariance.diagonal().array().log().sum() -
         0.5 * static_cast<double>(values.size()) * std::log(2 * std::numbers::pi);
}

}  // namespace hone::search
