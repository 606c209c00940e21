#include "server/search/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace hone::search {
namespace {

TEST(GaussianProcessTest, PassesThroughItsObservationsAndForgetsFarAway) {
  GaussianProcess process({.deviation = 2, .length = 1, .noise = 1e-3});
  for (int i = 0; i <= 6; ++i) process.Add({{0.5 * i}, {}}, std::sin(0.5 * i));
  for (int i = 0; i <= 6; ++i) {
    EXPECT_NEAR(process.At({{0.5 * i}, {}}).mean, std::sin(0.5 * i), 1e-3);
    EXPECT_LT(process.At({{0.5 * i}, {}}).deviation, 2e-3);
  }
  EXPECT_NEAR(process.At({{1.75}, {}}).mean, std::sin(1.75), 0.02);
  EXPECT_NEAR(process.At({{100}, {}}).mean, 0, 1e-9);
  EXPECT_NEAR(process.At({{100}, {}}).deviation, 2, 1e-9);
}

TEST(GaussianProcessTest, OtherChoicesSayLess) {
  GaussianProcess process({.deviation = 1, .length = 1, .hamming = 3, .noise = 1e-3});
  process.Add({{0}, {1, 1}}, 1);
  const double same = process.At({{0}, {1, 1}}).mean, one = process.At({{0}, {1, 2}}).mean,
               both = process.At({{0}, {2, 2}}).mean;
  EXPECT_NEAR(same, 1, 1e-5);
  EXPECT_NEAR(one, std::exp(-1.5), 1e-5);
  EXPECT_NEAR(both, std::exp(-3.0), 1e-5);
}

TEST(GaussianProcessTest, JointPosteriorAgreesWithTheMarginals) {
  GaussianProcess process({.deviation = 1, .length = 2, .noise = 0.1});
  for (int i = 0; i < 40; ++i) process.Add({{0.3 * i, std::cos(i)}, {i % 3}}, std::sin(0.3 * i));
  const std::vector<KernelInput> inputs = {{{1, 0}, {0}}, {{1, 0}, {0}}, {{4, 1}, {2}}};
  const GaussianProcess::Joint joint = process.At(inputs);
  const Eigen::MatrixXd covariance = joint.factor * joint.factor.transpose();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const GaussianProcess::Marginal marginal = process.At(inputs[i]);
    EXPECT_NEAR(joint.mean[i], marginal.mean, 1e-9);
    EXPECT_NEAR(std::sqrt(covariance(i, i)), marginal.deviation, 1e-4);
  }
  // Equal inputs are drawn equal.
  EXPECT_NEAR(covariance(0, 1), covariance(0, 0), 1e-6);
}

// The lower triangle of a sine's covariance, and its values.
double LikelihoodOfSine(const Kernel& kernel) {
  constexpr int kCount = 30;
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(kCount, kCount);
  Eigen::VectorXd values(kCount);
  for (int i = 0; i < kCount; ++i) {
    values[i] = std::sin(0.2 * i);
    for (int j = 0; j <= i; ++j)
      covariance(i, j) = kernel(KernelInput{{0.2 * i}, {}}, KernelInput{{0.2 * j}, {}});
    covariance(i, i) += kernel.noise * kernel.noise;
  }
  return LogLikelihood(covariance, values);
}

TEST(GaussianProcessTest, LikelihoodPrefersTheLengthOfTheData) {
  EXPECT_GT(LikelihoodOfSine({.deviation = 1, .length = 2, .noise = 0.05}),
            LikelihoodOfSine({.deviation = 1, .length = 0.05, .noise = 0.05}));
}

TEST(GaussianProcessTest, LikelihoodIsThatOfANormalDistribution) {
  Eigen::MatrixXd covariance(2, 2);
  covariance << 2, 0, 0.5, 1;  // the upper triangle is not looked at
  const Eigen::VectorXd values = Eigen::Vector2d(1, -1);
  Eigen::Matrix2d whole;
  whole << 2, 0.5, 0.5, 1;
  const double expected = -0.5 * values.dot(whole.inverse() * values) -
                          0.5 * std::log(whole.determinant()) - std::log(2 * std::numbers::pi);
  EXPECT_NEAR(LogLikelihood(covariance, values), expected, 1e-12);
  Eigen::MatrixXd indefinite(2, 2);
  indefinite << 1, 0, 2, 1;
  EXPECT_TRUE(std::isinf(LogLikelihood(indefinite, values)));
}

}  // namespace
}  // namespace hone::search
