#ifndef HONE_SERVER_TUNER_COST_MODEL_GAUSSIAN_PROCESS_H_
#define HONE_SERVER_TUNER_COST_MODEL_GAUSSIAN_PROCESS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/tuner/cost_model/dense.h"

namespace hone::cost_model {

// The input of a kernel function that describes a candidate. All inputs of a process have the same
// lengths.
struct KernelInput {
  std::vector<double> numbers;
  std::vector<int64_t> choices;
};

// The distance between two inputs.
struct Separation {
  double squares = 0;    // sum of the squared differences of the numbers
  double differing = 0;  // share of the choices that differ
};
Separation Between(const KernelInput& a, const KernelInput& b);

// deviation² · shape(distance of the numbers / length) · exp(−hamming · share of the choices that
// differ).
struct Kernel {
  enum class Shape : uint8_t { kRbf, kMatern52 };
  Shape shape = Shape::kMatern52;
  double deviation = 1;
  double length = 1;
  double hamming = 1;
  double noise = 0.05;  // standard deviation of an observation

  double operator()(const Separation& apart) const;
  double operator()(const KernelInput& a, const KernelInput& b) const {
    return (*this)(Between(a, b));
  }
};

// Inputs with observed values, for comparing kernels. The distances are computed once.
class Observations {
 public:
  void Add(KernelInput input, double value);

  // Returns a kernel's covariances of all pairs, without noise: the lower triangle, row by row.
  std::vector<double> Covariances(const Kernel& kernel) const;

  // The terms of the likelihood of the values under mean zero.
  struct Evidence {
    double squares = 0;  // valuesᵀ · covariance⁻¹ · values
    double log_determinant = 0;
  };
  // `covariances` are those of a kernel with deviation 1. `deviation` and `noise` are applied to
  // them.
  Evidence EvidenceOf(absl::Span<const double> covariances, double deviation, double noise) const;

  int size() const { return static_cast<int>(inputs_.size()); }

 private:
  std::vector<KernelInput> inputs_;
  std::vector<double> values_;
  std::vector<Separation> apart_;  // the lower triangle, row by row
};

// A Gaussian process with mean zero (Rasmussen and Williams, 2006, algorithm 2.1). Observations are
// added one by one, each in O(n²). Const calls are thread-safe.
class GaussianProcess {
 public:
  explicit GaussianProcess(const Kernel& kernel = {}) : kernel_(kernel) {}

  void Add(KernelInput input, double value);
  int size() const { return static_cast<int>(inputs_.size()); }
  const Kernel& kernel() const { return kernel_; }

  // The posterior of the value without noise.
  struct Marginal {
    double mean;
    double deviation;
  };
  Marginal At(const KernelInput& input) const;

  // The joint posterior at several inputs. A sample is mean + factor · (standard normal vector).
  struct Joint {
    std::vector<double> mean;
    Cholesky factor;
  };
  Joint At(absl::Span<const KernelInput> inputs) const;

  // Returns valuesᵀ · covariance⁻¹ · values.
  double Squares() const;
  // Weights returns covariance⁻¹ · values. Precision returns covariance⁻¹, row by row, in O(n³).
  std::vector<double> Weights() const;
  std::vector<double> Precision() const;

 private:
  // Covariances returns those of the input with all observations, Whitened factor⁻¹ · these.
  std::vector<double> Covariances(const KernelInput& input) const;
  std::vector<double> Whitened(const KernelInput& input) const;

  Kernel kernel_;
  std::vector<KernelInput> inputs_;
  Cholesky factor_;            // of the covariance with the noise
  std::vector<double> white_;  // factor⁻¹ · values
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_GAUSSIAN_PROCESS_H_
