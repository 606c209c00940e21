#include "common/schedule/recorded/recorder.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/base/internal/raw_logging.h"
#include "common/schedule/recorded/arithmetic.h"

namespace hone::recorded {
namespace {

constexpr int64_t kUnbounded = int64_t{1} << 60;

thread_local Recorder* recorder_of_thread = nullptr;

__extension__ using Wide = __int128;

int64_t Saturate(Wide value) {
  return static_cast<int64_t>(std::clamp<Wide>(value, -kUnbounded, kUnbounded));
}

bool IsCommutative(Op op) {
  return op == Op::kAdd || op == Op::kMul || op == Op::kMin || op == Op::kMax || op == Op::kGcd;
}

}  // namespace

Recorder::Recorder() {
  ABSL_RAW_CHECK(recorder_of_thread == nullptr, "a thread records one replay at a time");
  recorder_of_thread = this;
}
Recorder::~Recorder() { recorder_of_thread = nullptr; }

Recorder& Recorder::OfThread() {
  ABSL_RAW_CHECK(recorder_of_thread != nullptr, "a recorded number outlived its replay");
  return *recorder_of_thread;
}

void Recorder::Narrow(int32_t step, Bounds to) {
  Bounds& bounds = bounds_[step];
  bounds = {std::max(bounds.low, to.low), std::min(bounds.high, to.high)};
}

int32_t Recorder::Intern(const Step& step, int64_t value) {
  const auto [found, fresh] = ids_.emplace(step, static_cast<int32_t>(steps_.size()));
  if (!fresh) {
    Narrow(found->second, BoundsOf(step));  // the guards may have told more since
    return found->second;
  }
  bounds_.push_back(BoundsOf(step));
  steps_.push_back(step);
  values_.push_back(value);
  return found->second;
}

int32_t Recorder::StepOf(const Number& number) {
  if (number.step() >= 0) return number.step();
  return Intern({.value = number.recorded_value()}, number.recorded_value());
}

Number Recorder::Input(int position, int64_t value) {
  return {value, Intern({.op = Op::kInput, .a = position}, value)};
}

Recorder::Bounds Recorder::BoundsOf(const Step& step) const {
  constexpr Bounds kAny{-kUnbounded, kUnbounded};
  if (step.op == Op::kConstant) return {step.value, step.value};
  if (step.op == Op::kInput) return kAny;
  if (step.op == Op::kMember) return {0, 1};
  const Bounds a = bounds_[step.a], b = step.b < 0 ? Bounds{0, 0} : bounds_[step.b];
  switch (step.op) {
    case Op::kAdd:
      return {Saturate(Wide{a.low} + b.low), Saturate(Wide{a.high} + b.high)};
    case Op::kSub:
      return {Saturate(Wide{a.low} - b.high), Saturate(Wide{a.high} - b.low)};
    case Op::kMul: {
      const Wide corners[] = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low,
                              Wide{a.high} * b.high};
      return {Saturate(*std::min_element(corners, corners + 4)),
              Saturate(*std::max_element(corners, corners + 4))};
    }
    case Op::kQuotient:
      if (a.low < 0 || b.low < 1) return kAny;
      return {a.low / b.high, a.high / b.low};
    case Op::kFloorDiv:
      if (b.low < 1) return kAny;
      return {Evaluate(Op::kFloorDiv, a.low, a.low < 0 ? b.low : b.high),
              Evaluate(Op::kFloorDiv, a.high, a.high < 0 ? b.high : b.low)};
    case Op::kRemainder:
      if (a.low < 0 || b.low < 1) return kAny;
      return {0, std::min(a.high, b.high - 1)};
    case Op::kFloorMod:
      if (b.low < 1) return kAny;
      return {0, a.low < 0 ? b.high - 1 : std::min(a.high, b.high - 1)};
    case Op::kMin:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Op::kMax:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Op::kAbs:
      return {a.low > 0    ? a.low
              : a.high < 0 ? -a.high
                           : 0,
              std::max(std::abs(a.low), std::abs(a.high))};
    case Op::kGcd:
      return {a.low > 0 || b.low > 0 ? 1 : 0, kUnbounded};
    case Op::kConstant:
    case Op::kInput:
    case Op::kMember:
      break;
  }
  return kAny;
}

std::optional<Number> Recorder::Simplified(Op op, const Number& a, const Number& b) {
  const Step of = steps_[a.step()];
  const Bounds x = bounds_[a.step()];
  const auto step = [&](int32_t id) {
    return steps_[id].op == Op::kConstant ? Number(values_[id]) : Number(values_[id], id);
  };
  const bool constant = b.step() < 0;
  const int64_t c = b.recorded_value();
  switch (op) {
    case Op::kAdd:
      if (constant && c == 0) return a;
      if (constant && of.op == Op::kAdd && step(of.b).step() < 0)
        return Apply(op, step(of.a), values_[of.b] + c);
      break;
    case Op::kSub:
      if (a.step() == b.step()) return 0;
      // (p + q) − q = p.
      if (of.op == Op::kAdd && of.b == b.step()) return step(of.a);
      if (of.op == Op::kAdd && of.a == b.step()) return step(of.b);
      break;
    case Op::kMul:
      if (constant && c == 1) return a;
      if (constant && c == 0) return 0;
      if (constant && of.op == Op::kMul && step(of.b).step() < 0)
        return Apply(op, step(of.a), values_[of.b] * c);
      break;
    case Op::kQuotient:
    case Op::kFloorDiv:
      if (constant && c == 1) return a;
      if (!constant && a.step() == b.step() && x.low > 0) return 1;
      // (p · q) / q = p.
      if (of.op == Op::kMul && !constant && bounds_[b.step()].low > 0 && of.b == b.step())
        return step(of.a);
      if (of.op == Op::kMul && !constant && bounds_[b.step()].low > 0 && of.a == b.step())
        return step(of.b);
      if (of.op == Op::kMul && constant && c > 0 && step(of.b).step() < 0 && values_[of.b] % c == 0)
        return Apply(Op::kMul, step(of.a), values_[of.b] / c);
      if (constant && c > 0 && x.low >= 0 && x.high < c) return 0;
      break;
    case Op::kRemainder:
    case Op::kFloorMod:
      if (constant && c == 1) return 0;
      if (!constant && bounds_[b.step()].low > 0 &&
          (a.step() == b.step() || (of.op == Op::kMul && (of.a == b.step() || of.b == b.step()))))
        return 0;
      if (of.op == Op::kMul && constant && c > 0 && step(of.b).step() < 0 && values_[of.b] % c == 0)
        return 0;
      if (constant && c > 0 && x.low >= 0 && x.high < c) return a;
      break;
    case Op::kMin:
    case Op::kMax: {
      if (a.step() == b.step()) return a;
      const Bounds y = constant ? Bounds{c, c} : bounds_[b.step()];
      if (x.high <= y.low) return op == Op::kMin ? a : b;
      if (y.high <= x.low) return op == Op::kMin ? b : a;
      break;
    }
    case Op::kAbs:
      if (x.low >= 0) return a;
      break;
    case Op::kGcd:
      if (constant && (c == 1 || c == -1)) return 1;
      if (a.step() == b.step() && x.low >= 0) return a;
      break;
    default:
      break;
  }
  return std::nullopt;
}

Number Recorder::Apply(Op op, const Number& first, const Number& second) {
  Number a = first, b = second;
  // Constants stand on the right; a difference with one is a sum.
  if (op == Op::kSub && b.step() < 0) op = Op::kAdd, b = -b.recorded_value();
  if (IsCommutative(op) && (a.step() < 0 || (b.step() >= 0 && a.step() > b.step())))
    std::swap(a, b);
  const int64_t value = Evaluate(op, a.recorded_value(), b.recorded_value());
  if (a.step() >= 0) {
    if (const std::optional<Number> simple = Simplified(op, a, b)) return *simple;
  } else {
    // A constant by more than it is.
    const int64_t c = a.recorded_value();
    const bool small = c >= 0 && bounds_[b.step()].low > c;
    if (c == 0 || (small && (op == Op::kQuotient || op == Op::kFloorDiv))) {
      if (op != Op::kSub) return 0;
    } else if (small && (op == Op::kRemainder || op == Op::kFloorMod)) {
      return c;
    }
    // 0 − (0 − x) = x.
    if (op == Op::kSub && c == 0 && steps_[b.step()].op == Op::kSub &&
        steps_[steps_[b.step()].a] == Step{})
      return {values_[steps_[b.step()].b], steps_[b.step()].b};
  }
  const int32_t left = StepOf(a);
  const int32_t right = op == Op::kAbs ? -1 : StepOf(b);
  return {value, Intern({.op = op, .a = left, .b = right}, value)};
}

Number Recorder::IsIn(const Number& number, std::vector<int64_t> table) {
  const bool is = std::find(table.begin(), table.end(), number.recorded_value()) != table.end();
  if (number.step() < 0) return is;
  const auto same = std::find(tables_.begin(), tables_.end(), table);
  const auto id = static_cast<int32_t>(same - tables_.begin());
  if (same == tables_.end()) tables_.push_back(std::move(table));
  return {is, Intern({.op = Op::kMember, .a = number.step(), .b = id}, is)};
}

void Recorder::Learn(const Guard& guard) {
  const Bounds a = bounds_[guard.a], b = bounds_[guard.b];
  if (guard.relation == Guard::Relation::kEqual) {
    if (guard.holds) {
      Narrow(guard.a, b);
      Narrow(guard.b, a);
    } else if (b.low == b.high) {  // at an end
      if (a.low == b.low) Narrow(guard.a, {a.low + 1, a.high});
      if (a.high == b.low) Narrow(guard.a, {a.low, a.high - 1});
    }
  } else if (guard.holds) {  // a < b
    Narrow(guard.a, {a.low, b.high - 1});
    Narrow(guard.b, {a.low + 1, b.high});
  } else {  // b ≤ a
    Narrow(guard.a, {b.low, a.high});
    Narrow(guard.b, {b.low, a.high});
  }
}

bool Recorder::Compare(Guard::Relation relation, const Number& first, const Number& second) {
  Number a = first, b = second;
  if (a.step() == b.step()) return relation == Guard::Relation::kEqual;
  if (relation == Guard::Relation::kEqual &&
      (a.step() < 0 || (b.step() >= 0 && a.step() > b.step())))
    std::swap(a, b);
  const int32_t left = StepOf(a), right = StepOf(b);
  const Bounds x = bounds_[left], y = bounds_[right];
  const int64_t va = a.recorded_value(), vb = b.recorded_value();
  if (relation == Guard::Relation::kLess) {
    if (x.high < y.low) return true;
    if (x.low >= y.high) return false;
  } else {
    if (x.high < y.low || y.high < x.low) return false;
    if (x.low == x.high && y.low == y.high) return x.low == y.low;
  }
  const bool holds = relation == Guard::Relation::kLess ? va < vb : va == vb;
  const uint64_t key = static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right) << 1 |
                       static_cast<uint64_t>(relation);
  if (asked_.insert(key).second) {
    guards_.push_back({.relation = relation, .a = left, .b = right, .holds = holds});
    Learn(guards_.back());
  }
  return holds;
}

Recording Recorder::Finish(const std::vector<Number>& numbers) const {
  std::vector<bool> needed(steps_.size(), false);
  for (const Guard& guard : guards_) needed[guard.a] = needed[guard.b] = true;
  for (const Number& number : numbers) {
    if (number.step() >= 0) needed[number.step()] = true;
  }
  for (size_t i = steps_.size(); i-- > 0;) {
    if (!needed[i] || steps_[i].op == Op::kConstant || steps_[i].op == Op::kInput) continue;
    needed[steps_[i].a] = true;
    if (steps_[i].b >= 0 && steps_[i].op != Op::kMember) needed[steps_[i].b] = true;
  }
  Recording recording;
  recording.tables = tables_;
  std::vector<int32_t> renamed(steps_.size(), -1);
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!needed[i]) continue;
    renamed[i] = static_cast<int32_t>(recording.steps.size());
    Step step = steps_[i];
    if (step.op != Op::kConstant && step.op != Op::kInput) {
      step.a = renamed[step.a];
      if (step.b >= 0 && step.op != Op::kMember) step.b = renamed[step.b];
    }
    recording.steps.push_back(step);
  }
  for (Guard guard : guards_) {
    guard.a = renamed[guard.a];
    guard.b = renamed[guard.b];
    recording.guards.push_back(guard);
  }
  for (const Number& number : numbers) {
    recording.numbers.push_back(number.step() < 0 ? -1 : renamed[number.step()]);
    recording.values.push_back(number.recorded_value());
  }
  return recording;
}

Number Number::Record(Op op, const Number& a, const Number& b) {
  return Recorder::OfThread().Apply(op, a, b);
}

Number Number::IsIn(const Number& number, std::vector<int64_t> table) {
  return Recorder::OfThread().IsIn(number, std::move(table));
}

bool Number::Compare(Guard::Relation relation, const Number& a, const Number& b) {
  return Recorder::OfThread().Compare(relation, a, b);
}

int64_t Number::Pin() const {
  Recorder::OfThread().Compare(Guard::Relation::kEqual, *this, Number(value_));
  return value_;
}

}  // namespace hone::recorded
