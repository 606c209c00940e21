#include "worker/runner/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/ir/dtype.h"
#include "common/ir/error_bound.h"
#include "worker/runner/inputs.h"

namespace hone::runner {
namespace {

constexpr double kMaxReported = 1e30;  // errors are reported as finite numbers

// The compiler vectorizes loops over these lanes; the widest version that the CPU supports is
// chosen at load time.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define HONE_FOR_EACH_ISA __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HONE_FOR_EACH_ISA
#endif

struct Scan {
  double worst = 0;
  int64_t wrong = 0;
};

// Reference is float or double.
template <typename Reference>
inline __attribute__((always_inline)) Scan ScanF32(const float* data, const Reference* values,
                                                   const Reference* magnitudes, int64_t elements,
                                                   double by_magnitude, double by_value,
                                                   double tiny) {
  constexpr int kLanes = 16;
  double worst[kLanes] = {};
  double wrong[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= elements; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const double expected = values[i + lane];
      const double error = __builtin_fabs(static_cast<double>(data[i + lane]) - expected);
      const double bound =
          by_magnitude * magnitudes[i + lane] + by_value * __builtin_fabs(expected) + tiny;
      const double ratio = error / bound;
      worst[lane] = ratio > worst[lane] ? ratio : worst[lane];
      wrong[lane] += ratio <= 1 ? 0.0 : 1.0;  // a NaN is wrong
    }
  }
  Scan scan;
  for (int lane = 0; lane < kLanes; ++lane) {
    scan.worst = worst[lane] > scan.worst ? worst[lane] : scan.worst;
    scan.wrong += static_cast<int64_t>(wrong[lane]);
  }
  for (; i < elements; ++i) {
    const double expected = values[i];
    const double error = __builtin_fabs(static_cast<double>(data[i]) - expected);
    const double ratio =
        error / (by_magnitude * magnitudes[i] + by_value * __builtin_fabs(expected) + tiny);
    scan.worst = ratio > scan.worst ? ratio : scan.worst;
    scan.wrong += ratio <= 1 ? 0 : 1;
  }
  return scan;
}

HONE_FOR_EACH_ISA
Scan ScanWide(const float* data, const double* values, const double* magnitudes, int64_t elements,
              double by_magnitude, double by_value, double tiny) {
  return ScanF32(data, values, magnitudes, elements, by_magnitude, by_value, tiny);
}

HONE_FOR_EACH_ISA
Scan ScanNarrow(const float* data, const float* values, const float* magnitudes, int64_t elements,
                double by_magnitude, double by_value, double tiny) {
  return ScanF32(data, values, magnitudes, elements, by_magnitude, by_value, tiny);
}

// Returns the error that is allowed even at 0: the smallest normal number, or, if that is large,
// the rounding error of a denormal.
double ErrorAtZero(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF16:
      return 0x1p-14;
    case ir::DType::kBF16:
    case ir::DType::kF32:
      return 0x1p-126;
    case ir::DType::kF64:
      return 0x1p-1022;
    case ir::DType::kF8E4M3:
      return 0x1p-10;
    case ir::DType::kF8E5M2:
      return 0x1p-17;
    default:
      return 0;
  }
}

// Clamps the expected element, which is in f64, to the range of a dtype that saturates.
ir::Scalar WithinRange(ir::DType dtype, ir::Scalar expected) {
  if (!ir::Saturates(dtype)) return expected;
  const double largest = ir::RoundTo(dtype, std::numeric_limits<double>::max());
  return std::fabs(expected.real()) > largest ? ir::CastTo(dtype, expected) : expected;
}

// The allowed error of each element.
class Bounds {
 public:
  Bounds(const TensorSpec& spec, const Expected& expected, const Signature& signature,
         double tolerance)
      : expected_(expected),
        by_magnitude_(ir::IsFloat(spec.dtype) ? signature.relative_error + tolerance : 0),
        by_value_(ir::UnitRoundoff(spec.dtype) +
                  (expected.dtype == ir::DType::kF32 ? ir::UnitRoundoff(ir::DType::kF32) : 0)),
        tiny_(ErrorAtZero(spec.dtype)),
        dtype_(spec.dtype) {}

  double Of(int64_t i) const {
    const double value = std::fabs(WithinRange(dtype_, expected_.Value(i)).real());
    return (by_magnitude_ == 0 ? 0 : by_magnitude_ * expected_.Magnitude(i)) +
           expected_.Rounding(i) + (std::isinf(value) ? 0 : by_value_ * value) + tiny_;
  }
  // Scans all elements of an f32 output whose roundings are 0.
  Scan ScanAll(const float* data, int64_t elements) const {
    if (expected_.narrow) {
      return ScanNarrow(data, static_cast<const float*>(expected_.values),
                        static_cast<const float*>(expected_.magnitudes), elements, by_magnitude_,
                        by_value_, tiny_);
    }
    return ScanWide(data, static_cast<const double*>(expected_.values),
                    static_cast<const double*>(expected_.magnitudes), elements, by_magnitude_,
                    by_value_, tiny_);
  }

 private:
  const Expected& expected_;
  double by_magnitude_, by_value_, tiny_;
  ir::DType dtype_;
};

// Returns |a − b|, exact up to the rounding of the result.
double Distance(ir::Scalar a, ir::Scalar b) {
  if (!a.is_whole() || !b.is_whole()) return std::fabs(a.real() - b.real());
  const auto left = static_cast<uint64_t>(a.whole()), right = static_cast<uint64_t>(b.whole());
  return static_cast<double>(a < b ? right - left : left - right);
}

// Returns the error of one element divided by its bound; infinity if the error is not finite, for
// example NaN.
double ErrorRatio(ir::DType dtype, ir::Scalar got, ir::Scalar expected, double allowed) {
  // An infinity is right if the reference plus its bound overflows. Types that saturate are
  // computed in f32 and keep its infinities.
  const ir::DType computed = ir::Saturates(dtype) ? ir::AccumulatorOf(dtype) : dtype;
  const double beyond = expected.real() + std::copysign(allowed, got.real());
  const bool overflows = std::isinf(got.real()) && ir::RoundTo(computed, beyond) == got.real();
  expected = WithinRange(dtype, expected);
  const double wanted = expected.real(), found = got.real();
  if (!std::isfinite(wanted)) {
    const bool same = std::isnan(wanted) ? std::isnan(found) : found == wanted;
    return same ? 0 : INFINITY;
  }
  // Every value is accepted, for example for the log of a difference that may be computed as 0.
  if (!std::isfinite(allowed)) return 0;
  const double error = Distance(got, expected);
  if (error == 0 || overflows) return 0;
  const double ratio = error / allowed;
  return std::isnan(ratio) ? INFINITY : ratio;
}

std::string Describe(const TensorSpec& spec, int64_t index, ir::Scalar got, ir::Scalar expected,
                     double allowed) {
  const auto text = [](ir::Scalar value) {
    return value.is_whole() ? value.ToText() : absl::StrFormat("%.9g", value.real());
  };
  return absl::StrFormat("%s: element %d is %s, expected %s ± %.3g", spec.name, index, text(got),
                         text(expected), allowed);
}

// Returns the smallest tolerance that would allow this element without the other terms of the
// bound.
double ToleranceOf(ir::Scalar got, ir::Scalar expected, double magnitude) {
  const double error = Distance(got, expected);
  if (error == 0) return 0;
  const double relative = error / magnitude;
  return std::isfinite(relative) ? relative : INFINITY;
}

// Returns advice for errors that a less accurate algorithm, such as Winograd's, could cause; "" if
// they are too large for that. `needed` is the tolerance that allows all errors. A wrong kernel may
// have errors of this size, too.
std::string Hint(const TensorSpec& spec, const Signature& signature, double needed) {
  constexpr double kOfAlgorithm = 16;  // times the relative error of other kernels
  if (!ir::IsFloat(spec.dtype) || needed <= 0 || needed > kOfAlgorithm * signature.relative_error) {
    return "";
  }
  const double unit = std::pow(10.0, std::floor(std::log10(needed)));
  return absl::StrFormat(
      "; if its algorithm is less accurate, as Winograd's is, a tolerance of %.1g allows it",
      std::ceil(needed / unit) * unit);
}

}  // namespace

CheckResult CheckOutput(const TensorSpec& spec, const void* data, const Expected& expected,
                        const Signature& signature, double tolerance) {
  const Bounds bounds(spec, expected, signature, tolerance);
  CheckResult result;
  if (spec.dtype == ir::DType::kF32 && expected.roundings == nullptr &&
      expected.positions == nullptr) {
    const Scan scan = bounds.ScanAll(static_cast<const float*>(data), spec.elements);
    result.max_error = scan.worst;
    if (scan.wrong == 0) return result;
  }
  double worst = 0, needed = 0;
  for (int64_t i = 0; i < expected.Count(spec); ++i) {
    const int64_t position = expected.Position(i);
    const ir::Scalar got = ir::ReadElement(spec.dtype, data, position), wanted = expected.Value(i);
    const double ratio = ErrorRatio(spec.dtype, got, wanted, bounds.Of(i));
    worst = std::max(worst, ratio);
    if (ratio <= 1) continue;
    needed = std::max(needed, ToleranceOf(got, wanted, expected.Magnitude(i)));
    if (!result.ok) continue;
    result.ok = false;
    result.detail = Describe(spec, position, got, wanted, bounds.Of(i));
  }
  result.max_error = std::min(worst, kMaxReported);
  result.detail += Hint(spec, signature, needed);
  return result;
}

bool IsExact(const TensorSpec& spec, const Expected& expected, const Signature& signature) {
  if (!signature.keeps_integers) return false;
  double range = INFINITY;  // of integers, which wrap
  if (signature.roundoff > 0) range = std::min(range, 1 / signature.roundoff);
  if (signature.rounding > 0) range = std::min(range, 1 / signature.rounding);
  for (int64_t i = 0; i < expected.Count(spec); ++i) {
    const ir::Scalar value = expected.Value(i);
    const bool whole = value.is_whole() || value.real() == std::rint(value.real());
    if (!(expected.Magnitude(i) <= range) || !whole || expected.Rounding(i) > 0) return false;
  }
  return true;
}

CheckResult CheckExact(const TensorSpec& spec, const void* data, const Expected& expected,
                       const Signature& signature) {
  if (spec.dtype == ir::DType::kF32 && expected.positions == nullptr) {
    const auto* const got = static_cast<const float*>(data);
    const auto all_equal = [&](const auto* values) {
      bool equal = true;
      for (int64_t i = 0; i < spec.elements; ++i) equal &= got[i] == static_cast<float>(values[i]);
      return equal;
    };
    if (expected.narrow ? all_equal(static_cast<const float*>(expected.values))
                        : all_equal(static_cast<const double*>(expected.values))) {
      return {};
    }
  }
  const auto pair = [&](int64_t i) {
    return std::pair(ir::ReadElement(spec.dtype, data, expected.Position(i)),
                     ir::CastTo(spec.dtype, expected.Value(i)));
  };
  for (int64_t i = 0; i < expected.Count(spec); ++i) {
    const auto [got, wanted] = pair(i);
    if (got == wanted) continue;
    double needed = 0;
    for (int64_t e = i; e < expected.Count(spec); ++e) {
      const auto [other, right] = pair(e);
      needed = std::max(needed, ToleranceOf(other, right, expected.Magnitude(e)));
    }
    return {.ok = false,
            .max_error = kMaxReported,
            .detail = absl::StrCat("on small integers, where every order of summation is exact, ",
                                   Describe(spec, expected.Position(i), got, wanted, 0),
                                   Hint(spec, signature, needed))};
  }
  return {};
}

CheckResult CheckWritten(const TensorSpec& spec, const void* data, const Expected& expected) {
  if (!ir::IsFloat(spec.dtype) && spec.dtype != ir::DType::kBool) return {};
  for (int64_t i = 0; i < expected.Count(spec); ++i) {
    if (std::isnan(expected.Value(i).real())) return {};
  }
  const auto first_poisoned = [&](auto poison) {
    poison = static_cast<decltype(poison)>(~poison);
    const auto* const elements = static_cast<const decltype(poison)*>(data);
    return std::find(elements, elements + spec.elements, poison) - elements;
  };
  int64_t at = spec.elements;
  switch (ir::DTypeBytes(spec.dtype)) {
    case 1:
      at = first_poisoned(uint8_t{0});
      break;
    case 2:
      at = first_poisoned(uint16_t{0});
      break;
    case 4:
      at = first_poisoned(uint32_t{0});
      break;
    default:
      at = first_poisoned(uint64_t{0});
  }
  if (at == spec.elements) return {};
  return {.ok = false,
          .max_error = kMaxReported,
          .detail = absl::StrCat(spec.name, ": element ", at, " was not written")};
}

}  // namespace hone::runner
