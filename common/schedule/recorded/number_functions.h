#ifndef HONE_COMMON_SCHEDULE_RECORDED_NUMBER_FUNCTIONS_H_
#define HONE_COMMON_SCHEDULE_RECORDED_NUMBER_FUNCTIONS_H_

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "common/schedule/recorded/number.h"

// What the sources of ir and schedule call of the libraries with an int64_t, for a recording
// number: a step each, where a comparison would tell decisions apart that make the same program.
namespace hone::recorded {

inline Number Least(const Number& a, const Number& b) {
  if (a.step() < 0 && b.step() < 0) return std::min(a.recorded_value(), b.recorded_value());
  return Number::Record(Op::kMin, a, b);
}
inline Number Greatest(const Number& a, const Number& b) {
  if (a.step() < 0 && b.step() < 0) return std::max(a.recorded_value(), b.recorded_value());
  return Number::Record(Op::kMax, a, b);
}

}  // namespace hone::recorded

template <>
class std::numeric_limits<hone::recorded::Number> : public std::numeric_limits<int64_t> {};

namespace std {

inline hone::recorded::Number abs(const hone::recorded::Number& a) {
  if (a.step() < 0) return std::abs(a.recorded_value());
  return hone::recorded::Number::Record(hone::recorded::Op::kAbs, a, 0);
}
inline hone::recorded::Number gcd(const hone::recorded::Number& a,
                                  const hone::recorded::Number& b) {
  if (a.step() < 0 && b.step() < 0) return std::gcd(a.recorded_value(), b.recorded_value());
  return hone::recorded::Number::Record(hone::recorded::Op::kGcd, a, b);
}
// Chosen before the templates, also where those are given their argument.
template <typename T>
requires(std::same_as<T, hone::recorded::Number>) T min(const T& a, const T& b) {
  return hone::recorded::Least(a, b);
}
template <typename T>
requires(std::same_as<T, hone::recorded::Number>) T max(const T& a, const T& b) {
  return hone::recorded::Greatest(a, b);
}
template <typename T>
requires(std::same_as<T, hone::recorded::Number>) T
    clamp(const T& value, const T& low, const T& high) {
  return hone::recorded::Least(hone::recorded::Greatest(value, low), high);
}

}  // namespace std

namespace absl {
ABSL_NAMESPACE_BEGIN

inline bool SimpleAtoi(absl::string_view text, hone::recorded::Number* number) {
  int64_t value = 0;
  const bool read = absl::SimpleAtoi(text, &value);
  *number = value;
  return read;
}

ABSL_NAMESPACE_END
}  // namespace absl

#endif  // HONE_COMMON_SCHEDULE_RECORDED_NUMBER_FUNCTIONS_H_
