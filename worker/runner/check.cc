#include "worker/runner/check.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "worker/runner/elements.h"

namespace hone::runner {
namespace {

constexpr double kMaxReported = 1e30;  // errors are reported as finite numbers

// bound = by_magnitude·magnitude + by_value·|expected| + tiny
struct Bound {
  double by_magnitude = 0;
  double by_value = 0;
  double tiny = 0;
};

// A vector's worth of lanes that the compiler turns into vectors; the widest that the CPU has is
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

HONE_FOR_EACH_ISA
Scan ScanF32(const float* data, const double* values, const double* magnitudes, int64_t elements,
             double by_magnitude, double by_value, double tiny) {
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
    const double error = __builtin_fabs(static_cast<double>(data[i]) - values[i]);
    const double ratio =
        error / (by_magnitude * magnitudes[i] + by_value * __builtin_fabs(values[i]) + tiny);
    scan.worst = ratio > scan.worst ? ratio : scan.worst;
    scan.wrong += ratio <= 1 ? 0 : 1;
  }
  return scan;
}

// One element, with the cases that the fast scan leaves out. Returns the error over its bound;
// infinite when wrong beyond measure.
double ErrorRatio(ir::DType dtype, double got, double expected, double magnitude,
                  const Bound& bound) {
  if (std::isnan(expected) || std::isinf(expected)) {
    const bool same = std::isnan(expected) ? std::isnan(got) : got == expected;
    return same ? 0 : INFINITY;
  }
  const double error = std::fabs(got - expected);
  if (error == 0) return 0;
  const double allowed =
      bound.by_magnitude * magnitude + bound.by_value * std::fabs(expected) + bound.tiny;
  // Where the bound leaves the dtype's range, as where the reference does, overflow is right.
  if (std::isinf(got) && ir::RoundTo(dtype, expected + std::copysign(allowed, got)) == got)
    return 0;
  const double ratio = error / allowed;
  return std::isnan(ratio) ? INFINITY : ratio;
}

std::string Describe(const TensorSpec& spec, int64_t index, double got, double expected,
                     double allowed) {
  return absl::StrFormat("%s: element %d is %.9g, expected %.9g ± %.3g", spec.name, index, got,
                         expected, allowed);
}

// The tolerance that would allow an element, were there no other allowance.
double ToleranceOf(double got, double expected, double magnitude) {
  const double error = std::fabs(got - expected);
  if (error == 0) return 0;
  const double relative = error / magnitude;
  return std::isfinite(relative) ? relative : INFINITY;
}

// What a person may do about errors of the size of roundings, as other algorithms have them
// (Winograd's); a kernel that is wrong has larger ones. `needed`: the tolerance that allows them
// all.
std::string Hint(const TensorSpec& spec, double needed) {
  constexpr double kOfRounding = 1e-3;
  if (!ir::IsFloat(spec.dtype) || needed <= 0 || needed > kOfRounding) return "";
  const double unit = std::pow(10.0, std::floor(std::log10(needed)));
  return absl::StrFormat("; a tolerance of %.1g would allow it", std::ceil(needed / unit) * unit);
}

double SmallestNormal(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF16:
      return 0x1p-14;
    case ir::DType::kBF16:
    case ir::DType::kF32:
      return 0x1p-126;
    case ir::DType::kF64:
      return 0x1p-1022;
    default:
      return 0;
  }
}

// Integers up to this are exact in the dtype.
double ExactRange(ir::DType dtype) {
  const double roundoff = UnitRoundoff(dtype);
  if (roundoff > 0) return 1 / roundoff;
  switch (dtype) {
    case ir::DType::kBool:
      return 1;
    case ir::DType::kI8:
      return 127;
    case ir::DType::kU8:
      return 255;
    case ir::DType::kI32:
      return 0x1p31 - 1;
    default:
      return 0x1p53;
  }
}

}  // namespace

CheckResult CheckOutput(const TensorSpec& spec, const void* data, const Expected& expected,
                        const Signature& signature, double tolerance) {
  const Bound bound = {
      .by_magnitude = 4 * signature.roundoff * std::sqrt(signature.terms) + tolerance,
      .by_value = UnitRoundoff(spec.dtype),
      .tiny = SmallestNormal(spec.dtype)};
  CheckResult result;
  if (spec.dtype == ir::DType::kF32) {
    const Scan scan = ScanF32(static_cast<const float*>(data), expected.values, expected.magnitudes,
                              spec.elements, bound.by_magnitude, bound.by_value, bound.tiny);
    result.max_error = scan.worst;
    if (scan.wrong == 0) return result;
  }
  double worst = 0, needed = 0;
  for (int64_t i = 0; i < spec.elements; ++i) {
    const double got = ReadElement(spec.dtype, data, i);
    const double ratio =
        ErrorRatio(spec.dtype, got, expected.values[i], expected.magnitudes[i], bound);
    worst = std::max(worst, ratio);
    if (ratio > 1) {
      needed = std::max(needed, ToleranceOf(got, expected.values[i], expected.magnitudes[i]));
    }
    if (ratio > 1 && result.ok) {
      result.ok = false;
      const double allowed = bound.by_magnitude * expected.magnitudes[i] +
                             bound.by_value * std::fabs(expected.values[i]) + bound.tiny;
      result.detail = Describe(spec, i, got, expected.values[i], allowed);
    }
  }
  result.max_error = std::min(worst, kMaxReported);
  result.detail += Hint(spec, needed);
  return result;
}

bool IsExact(const TensorSpec& spec, const Expected& expected, const Signature& signature) {
  double range = ExactRange(spec.dtype);
  if (signature.roundoff > 0) range = std::min(range, 1 / signature.roundoff);
  for (int64_t i = 0; i < spec.elements; ++i) {
    const double value = expected.values[i];
    if (!(expected.magnitudes[i] <= range) || value != std::rint(value)) return false;
  }
  return true;
}

CheckResult CheckExact(const TensorSpec& spec, const void* data, const Expected& expected) {
  if (spec.dtype == ir::DType::kF32) {
    const auto* const got = static_cast<const float*>(data);
    bool equal = true;
    for (int64_t i = 0; i < spec.elements; ++i) {
      equal &= static_cast<double>(got[i]) == expected.values[i];
    }
    if (equal) return {};
  }
  for (int64_t i = 0; i < spec.elements; ++i) {
    const double got = ReadElement(spec.dtype, data, i);
    if (got == expected.values[i]) continue;
    double needed = 0;
    for (int64_t e = i; e < spec.elements; ++e) {
      const double other = ReadElement(spec.dtype, data, e);
      needed = std::max(needed, ToleranceOf(other, expected.values[e], expected.magnitudes[e]));
    }
    return {
        .ok = false,
        .max_error = kMaxReported,
        .detail = absl::StrCat("on small integers, where every order of summation is exact, ",
                               Describe(spec, i, got, expected.values[i], 0), Hint(spec, needed))};
  }
  return {};
}

}  // namespace hone::runner
