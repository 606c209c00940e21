#ifndef HONE_SERVER_SEARCH_GAUSSIAN_PROCESS_H_
#define HONE_SERVER_SEARCH_GAUSSIAN_PROCESS_H_

#include <Eigen/Dense>
#include <vector>

#include "absl/types/span.h"
#include "server/space/design_space.h"

namespace hone::search {

// A candidate as a kernel sees it. Inputs of one process have the same lengths.
struct KernelInput {
  std::vector<double> numbers;
  std::vector<int64_t> choices;
};

// How far two inputs are apart.
struct Separation {
  double squares = 0;    // sum of squared differences of the numbers
  double differing = 0;  // share of the choices that differ
};
Separation Between(const KernelInput& a, const KernelInput& b);

// deviation² · Matérn 5/2 of the distance of the numbers over `length` · exp(−hamming · share of
// the choices that differ).
struct Kernel {
  double deviation = 1;
  double length = 1;
  double hamming = 1;
  double noise = 0.05;  // standard deviation of an observation

  double operator()(const Separation& apart) const;
  double operator()(const KernelInput& a, const KernelInput& b) const {
    return (*this)(Between(a, b));
  }
};

// Of values with mean zero, by the lower triangle of their covariance, which is overwritten;
// −infinity where that is not positive definite.
double LogLikelihood(Eigen::MatrixXd& covariance, const Eigen::VectorXd& values);

// The parts of tiles as log2; of choices the number of the row, and log2 of its numbers where all
// rows are positive. REQUIRES legal decisions (others give an empty input).
KernelInput EmbedDecisions(const space::DesignSpace& space, absl::Span<const int64_t> decisions);

// A Gaussian process with mean zero. Observations are added one by one, each in O(n²), to the
// Cholesky factor of their covariance (Rasmussen and Williams, 2006, algorithm 2.1).
class GaussianProcess {
 public:
  explicit GaussianProcess(const Kernel& kernel) : kernel_(kernel) {}

  void Add(KernelInput input, double value);
  int size() const { return static_cast<int>(inputs_.size()); }
  const Kernel& kernel() const { return kernel_; }

  struct Marginal {
    double mean;
    double deviation;
  };
  Marginal At(const KernelInput& input) const;

  // The joint posterior of several inputs; draws from it are mean + factor · standard normals.
  struct Joint {
    Eigen::VectorXd mean;
    Eigen::MatrixXd factor;  // lower triangular
  };
  Joint At(absl::Span<const KernelInput> inputs) const;

 private:
  Eigen::VectorXd Whitened(const KernelInput& input) const;

  Kernel kernel_;
  std::vector<KernelInput> inputs_;
  Eigen::MatrixXd factor_;  // its upper left corner of size() rows is in use
  Eigen::VectorXd white_;   // factor⁻¹ · values
};

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_GAUSSIAN_PROCESS_H_
