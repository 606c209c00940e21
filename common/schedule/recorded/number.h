#ifndef HONE_COMMON_SCHEDULE_RECORDED_NUMBER_H_
#define HONE_COMMON_SCHEDULE_RECORDED_NUMBER_H_

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/schedule/recorded/recording.h"

namespace hone::recorded {

// An int64_t that knows how it follows from the decisions of the replay at hand: every operation on
// it is written into the thread's Recorder, every comparison as a guard. No value gets out unseen:
// a conversion to another type is a guard that the value is that one. Numbers that no decision had
// a part in are plain constants and cost a test.
class Number {
 public:
  constexpr Number() = default;
  template <std::integral T>
  constexpr Number(T value) : value_(static_cast<int64_t>(value)) {}
  template <typename T>
  requires(std::is_enum_v<T> || std::is_floating_point_v<T>) constexpr explicit Number(T value)
      : value_(static_cast<int64_t>(value)) {}
  // The result of a step.
  Number(int64_t value, int32_t step) : value_(value), step_(step) {}

  template <typename T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) constexpr explicit operator T()
      const {
    return static_cast<T>(step_ < 0 ? value_ : Pin());
  }
  constexpr explicit operator bool() const { return *this != Number(0); }
  operator absl::AlphaNum() const { return absl::AlphaNum(static_cast<int64_t>(*this)); }

  // −1: a constant.
  constexpr int32_t step() const { return step_; }
  // Without a guard: for the recorder alone.
  constexpr int64_t recorded_value() const { return value_; }

  friend constexpr Number operator+(const Number& a, const Number& b) {
    if (Constants(a, b)) return a.value_ + b.value_;
    return Record(Op::kAdd, a, b);
  }
  friend constexpr Number operator-(const Number& a, const Number& b) {
    if (Constants(a, b)) return a.value_ - b.value_;
    return Record(Op::kSub, a, b);
  }
  friend constexpr Number operator*(const Number& a, const Number& b) {
    if (Constants(a, b)) return a.value_ * b.value_;
    return Record(Op::kMul, a, b);
  }
  friend constexpr Number operator/(const Number& a, const Number& b) {
    if (Constants(a, b)) return a.value_ / b.value_;
    return Record(Op::kQuotient, a, b);
  }
  friend constexpr Number operator%(const Number& a, const Number& b) {
    if (Constants(a, b)) return a.value_ % b.value_;
    return Record(Op::kRemainder, a, b);
  }
  friend constexpr Number operator<<(const Number& a, int bits) {
    return a * Number(int64_t{1} << bits);
  }
  constexpr Number operator-() const { return Number(0) - *this; }
  constexpr Number& operator+=(const Number& b) { return *this = *this + b; }
  constexpr Number& operator-=(const Number& b) { return *this = *this - b; }
  constexpr Number& operator*=(const Number& b) { return *this = *this * b; }
  constexpr Number& operator/=(const Number& b) { return *this = *this / b; }
  constexpr Number& operator%=(const Number& b) { return *this = *this % b; }
  constexpr Number& operator++() { return *this += 1; }
  constexpr Number& operator--() { return *this -= 1; }
  constexpr Number operator++(int) {
    const Number old = *this;
    *this += 1;
    return old;
  }

  friend constexpr bool operator<(const Number& a, const Number& b) {
    if (Constants(a, b)) return a.value_ < b.value_;
    return Compare(Guard::Relation::kLess, a, b);
  }
  friend constexpr bool operator>(const Number& a, const Number& b) { return b < a; }
  friend constexpr bool operator<=(const Number& a, const Number& b) { return !(b < a); }
  friend constexpr bool operator>=(const Number& a, const Number& b) { return !(a < b); }
  friend constexpr bool operator==(const Number& a, const Number& b) {
    if (Constants(a, b)) return a.value_ == b.value_;
    return Compare(Guard::Relation::kEqual, a, b);
  }

  // A step of any kind. REQUIRES b to be a constant where the kind has one operand.
  static Number Record(Op op, const Number& a, const Number& b);
  // 1 if the table has the number, else 0.
  static Number IsIn(const Number& number, std::vector<int64_t> table);

 private:
  static constexpr bool Constants(const Number& a, const Number& b) {
    return (a.step_ & b.step_) < 0 && a.step_ < 0 && b.step_ < 0;
  }
  static bool Compare(Guard::Relation relation, const Number& a, const Number& b);
  int64_t Pin() const;

  int64_t value_ = 0;
  int32_t step_ = -1;
};

}  // namespace hone::recorded

#endif  // HONE_COMMON_SCHEDULE_RECORDED_NUMBER_H_
