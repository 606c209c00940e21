#ifndef HONE_COMMON_SCHEDULE_RECORDED_RECORDING_H_
#define HONE_COMMON_SCHEDULE_RECORDED_RECORDING_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace hone::recorded {

// How a number follows from others. Divisions are C++'s (kQuotient, kRemainder) or round down.
enum class Op : uint8_t {
  kConstant,  // value
  kInput,     // the decision at position `a`
  kAdd,
  kSub,
  kMul,
  kQuotient,
  kRemainder,
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
  kAbs,  // of a
  kGcd,
  kMember,  // 1 if a is in the table `b`, else 0
};

struct Step {
  Op op = Op::kConstant;
  int32_t a = -1, b = -1;  // steps before this one, but for kInput and kMember
  int64_t value = 0;       // of a constant
  friend bool operator==(const Step&, const Step&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Step& step) {
    return H::combine(std::move(h), step.op, step.a, step.b, step.value);
  }
};

// What a computation asked of numbers that depend on decisions, and the answer that it went on
// with.
struct Guard {
  enum class Relation : uint8_t { kLess, kEqual };
  Relation relation = Relation::kLess;
  int32_t a = -1, b = -1;  // steps
  bool holds = true;
  friend bool operator==(const Guard&, const Guard&) = default;
};

// What one replay did with the numbers of its decision vector. For every other vector whose guards
// hold alike, the same instructions take the same branches and make the same program, but for the
// numbers in it, which the steps tell.
struct Recording {
  std::vector<Step> steps;
  std::vector<std::vector<int64_t>> tables;  // of kMember
  std::vector<Guard> guards;                 // in the order in which they were asked
  bool legal = true;                         // the replay succeeded; else there are no numbers
  // Of each number of the program, in the order of ForEachNumber: its step, or −1: a constant.
  std::vector<int32_t> numbers;
  std::vector<int64_t> values;  // of those numbers in the replay that was recorded
};

}  // namespace hone::recorded

#endif  // HONE_COMMON_SCHEDULE_RECORDED_RECORDING_H_
