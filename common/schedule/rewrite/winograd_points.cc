#include "common/schedule/rewrite/winograd_points.h"

#include <algorithm>
#include <cmath>

namespace hone::schedule {
namespace {

// The coefficients of Π (x − a), lowest power first, over all points but the one at `without`.
std::vector<double> ProductWithout(const std::vector<double>& points, size_t without) {
  std::vector<double> product = {1};
  for (size_t l = 0; l < points.size(); ++l) {
    if (l == without) continue;
    product.push_back(0);
    for (size_t d = product.size() - 1; d > 0; --d)
      product[d] = product[d - 1] - points[l] * product[d];
    product[0] *= -points[l];
  }
  return product;
}

}  // namespace

WinogradMatrices MakeWinogradMatrices(int m) {
  constexpr double kPoints[] = {0, 1, -1, 2, -2, 0.5, -0.5};
  const int alpha = m + 2;
  const std::vector<double> points(kPoints, kPoints + m + 1);
  WinogradMatrices matrices;
  for (size_t i = 0; i < points.size(); ++i) {
    std::vector<double>& row = matrices.bt.emplace_back(ProductWithout(points, i));
    row.resize(alpha, 0);
    double denominator = 1;
    for (size_t l = 0; l < points.size(); ++l) denominator *= l == i ? 1 : points[i] - points[l];
    matrices.g.push_back(
        {1 / denominator, points[i] / denominator, points[i] * points[i] / denominator});
  }
  matrices.bt.push_back(ProductWithout(points, points.size()));
  matrices.g.push_back({0, 0, 1});
  for (int j = 0; j < m; ++j) {
    std::vector<double>& row = matrices.at.emplace_back();
    for (double point : points) row.push_back(std::pow(point, j));
    row.push_back(j == m - 1 ? 1 : 0);
  }
  return matrices;
}

double WinogradAmplification(int m) {
  const WinogradMatrices matrices = MakeWinogradMatrices(m);
  const auto sum = [](const std::vector<double>& row) {
    double total = 0;
    for (double c : row) total += std::abs(c);
    return total;
  };
  double worst = 0;
  for (const std::vector<double>& row : matrices.at) {
    double total = 0;
    for (size_t x = 0; x < row.size(); ++x)
      total += std::abs(row[x]) * sum(matrices.g[x]) * sum(matrices.bt[x]);
    worst = std::max(worst, total / 3);
  }
  return worst * worst;
}

}  // namespace hone::schedule
