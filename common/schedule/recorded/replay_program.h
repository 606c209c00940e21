#ifndef HONE_COMMON_SCHEDULE_RECORDED_REPLAY_PROGRAM_H_
#define HONE_COMMON_SCHEDULE_RECORDED_REPLAY_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/schedule/recorded/recording.h"

namespace hone::recorded {

inline constexpr int kLanes = 16;  // vectors that are evaluated at a time

// The decisions of up to kLanes candidates of one design space.
using DecisionLanes = absl::Span<const absl::Span<const int64_t>>;

// What one replay makes of every decision vector of its structure, without a replay: the program of
// the replay that was recorded, and how its numbers follow. A vector is of that structure if each
// guard holds for it as it did; then the program is the one that Replay gives, but for what no
// block reaches. Immutable; what changes from vector to vector is in a ReplayFrame.
class ReplayProgram {
 public:
  // `program`: the replay of the decisions that were recorded; null if that was refused.
  // Internal: it has other numbers than the recording.
  static absl::StatusOr<std::shared_ptr<const ReplayProgram>> Create(
      const Recording& recording, std::unique_ptr<const ir::Program> program);

  // Whether these vectors replay at all.
  bool legal() const { return program_ != nullptr; }

  size_t steps() const { return code_.size(); }
  size_t guards() const { return checks_.size(); }
  size_t numbers() const { return numbers_.size(); }

 private:
  friend class ReplayFrame;
  struct Code {
    Op op;
    int32_t a, b, out;
  };
  struct Check {
    Guard guard;
    size_t code_end;  // of the code that it needs
  };
  // A number of the program: its place in the order of NumbersOf.
  struct Varying {
    size_t place;
    int32_t step;
  };
  class Pairing;
  ReplayProgram() = default;

  std::unique_ptr<const ir::Program> program_;
  std::vector<Code> code_;
  std::vector<Check> checks_;
  std::vector<Varying> numbers_;
  std::vector<Step> constants_;  // `a`: the step
  std::vector<std::vector<int64_t>> tables_;
  size_t values_ = 0;
};

// Evaluates a ReplayProgram, and holds the one program that it fills in. Used by one thread at a
// time.
class ReplayFrame {
 public:
  explicit ReplayFrame(std::shared_ptr<const ReplayProgram> replay);
  // Points into itself.
  ReplayFrame(const ReplayFrame&) = delete;
  ReplayFrame& operator=(const ReplayFrame&) = delete;

  const ReplayProgram& replay() const { return *replay_; }

  // Bit i of the answer: vector i is of this structure. REQUIRES vectors as long as the recorded
  // one.
  uint32_t Match(DecisionLanes decisions);

  // The program of a vector that matched; valid until the next call. REQUIRES replay().legal(), and
  // that the last call of Match by this thread was of this frame.
  const ir::Program& ProgramOf(int lane);

 private:
  struct Place {
    int64_t* number;   // or
    ir::Index* index;  // its constant
    int32_t step;
  };
  class Places;

  void Run(size_t begin, size_t end, DecisionLanes decisions);

  const std::shared_ptr<const ReplayProgram> replay_;
  ir::Program program_;
  std::vector<Place> places_;  // made by the first ProgramOf
  bool placed_ = false;
};

}  // namespace hone::recorded

#endif  // HONE_COMMON_SCHEDULE_RECORDED_REPLAY_PROGRAM_H_
