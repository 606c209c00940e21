#ifndef HONE_COMMON_SCHEDULE_RECORDED_RECORDER_H_
#define HONE_COMMON_SCHEDULE_RECORDED_RECORDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/schedule/recorded/number.h"
#include "common/schedule/recorded/recording.h"

namespace hone::recorded {

// Writes down what the numbers of this thread do while it lives. Equal steps are one; what follows
// from the guards so far (a tile is at least 1) is not asked again. One per thread at a time.
class Recorder {
 public:
  Recorder();
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // A decision.
  Number Input(int position, int64_t value);

  // Everything that the guards and `numbers` depend on.
  Recording Finish(const std::vector<Number>& numbers) const;

  // For Number, at least one of whose arguments is no constant.
  Number Apply(Op op, const Number& a, const Number& b);
  bool Compare(Guard::Relation relation, const Number& a, const Number& b);
  Number IsIn(const Number& number, std::vector<int64_t> table);
  static Recorder& OfThread();

 private:
  // What the guards so far leave of a number.
  struct Bounds {
    int64_t low, high;
  };
  int32_t StepOf(const Number& number);
  int32_t Intern(const Step& step, int64_t value);
  Bounds BoundsOf(const Step& step) const;
  void Narrow(int32_t step, Bounds to);
  // What a step is without it, where the operands tell. REQUIRES `a` to be no constant.
  std::optional<Number> Simplified(Op op, const Number& a, const Number& b);
  void Learn(const Guard& guard);

  std::vector<Step> steps_;
  std::vector<int64_t> values_;
  std::vector<Bounds> bounds_;
  std::vector<Guard> guards_;
  absl::flat_hash_map<Step, int32_t> ids_;
  std::vector<std::vector<int64_t>> tables_;
  absl::flat_hash_set<uint64_t> asked_;
};

}  // namespace hone::recorded

#endif  // HONE_COMMON_SCHEDULE_RECORDED_RECORDER_H_
