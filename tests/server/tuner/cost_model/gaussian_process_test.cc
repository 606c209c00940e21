#include "server/tuner/cost_model/gaussian_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hone::cost_model {
namespace {

TEST(GaussianProcessTest, InterpolatesObservationsAndRevertsToThePrior) {
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

TEST(GaussianProcessTest, CovarianceFallsWithDifferentChoices) {
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
  // Computes the covariance from the rows of the factor.
  std::vector<std::vector<double>> columns;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<double> unit(inputs.size(), 0.0);
    unit[i] = 1;
    columns.push_back(joint.factor.Product(unit));
  }
  const auto covariance = [&](size_t i, size_t j) {
    double sum = 0;
    for (const std::vector<double>& column : columns) sum += column[i] * column[j];
    return sum;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const GaussianProcess::Marginal marginal = process.At(inputs[i]);
    EXPECT_NEAR(joint.mean[i], marginal.mean, 1e-9);
    EXPECT_NEAR(std::sqrt(covariance(i, i)), marginal.deviation, 1e-4);
  }
  // Draws at equal inputs are equal.
  EXPECT_NEAR(covariance(0, 1), covariance(0, 0), 1e-6);
}

// The log likelihood of a sine, up to a constant.
double LikelihoodOfSine(double length) {
  Observations observations;
  for (int i = 0; i < 30; ++i) observations.Add({{0.2 * i}, {}}, std::sin(0.2 * i));
  const Observations::Evidence evidence = observations.EvidenceOf(
      observations.Covariances({.length = length}), /*deviation=*/1, /*noise=*/0.05);
  return -0.5 * (evidence.squares + evidence.log_determinant);
}

TEST(GaussianProcessTest, LikelihoodPrefersTheLengthOfTheData) {
  EXPECT_GT(LikelihoodOfSine(2), LikelihoodOfSine(0.05));
}

TEST(GaussianProcessTest, EvidenceMatchesANormalDistribution) {
  Observations observations;
  observations.Add({{0}, {}}, 1);
  observations.Add({{1}, {}}, -1);
  const Kernel kernel{.shape = Kernel::Shape::kRbf};
  const std::vector<double> covariances = observations.Covariances(kernel);
  EXPECT_THAT(covariances, testing::ElementsAre(1, testing::DoubleNear(std::exp(-0.5), 1e-12), 1));
  const Observations::Evidence evidence =
      observations.EvidenceOf(covariances, /*deviation=*/2, /*noise=*/0.5);
  // The covariance matrix is (a b; b a).
  const double a = 4.25, b = 4 * std::exp(-0.5), determinant = a * a - b * b;
  EXPECT_NEAR(evidence.squares, (2 * a + 2 * b) / determinant, 1e-12);
  EXPECT_NEAR(evidence.log_determinant, std::log(determinant), 1e-12);
}

}  // namespace
}  // namespace hone::cost_model
