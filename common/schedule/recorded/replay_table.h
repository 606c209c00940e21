#ifndef HONE_COMMON_SCHEDULE_RECORDED_REPLAY_TABLE_H_
#define HONE_COMMON_SCHEDULE_RECORDED_REPLAY_TABLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/schedule/recorded/recording.h"

namespace hone::recorded {

inline constexpr int kLanes = 16;  // vectors that are evaluated at a time

// The decisions of up to kLanes candidates of one design space.
using DecisionLanes = absl::Span<const absl::Span<const int64_t>>;

// What the decision vectors of one design space replay to, without a replay, as far as recordings
// tell. Each recording is a structure: a vector has it if each guard holds for the vector as it
// did, and its program is then the one that was recorded, with numbers that follow. Steps and
// guards that recordings share are kept, and evaluated, once. Read by many threads, each with a
// ReplayFrame, while none adds.
class ReplayTable {
 public:
  // The new structure's number. `program`: the replay of the decisions that were recorded; null if
  // that was refused. Internal: it has other numbers than the recording.
  absl::StatusOr<int> Add(const Recording& recording, std::unique_ptr<const ir::Program> program);

  int structures() const { return static_cast<int>(structures_.size()); }
  // Whether vectors of a structure replay at all.
  bool legal(int structure) const { return structures_[structure].program != nullptr; }

  size_t steps() const { return steps_.size(); }
  size_t guards() const { return guards_.size(); }

 private:
  friend class ReplayFrame;
  struct SharedGuard {
    Guard guard;                    // `holds` unused
    bool held[2] = {false, false};  // the outcomes that structures have
    bool contested() const { return held[0] && held[1]; }
  };
  struct Outcome {
    int32_t guard;
    bool holds;
  };
  // A number of a program: its place in the order of NumbersOf.
  struct Varying {
    size_t place;
    int32_t step;
  };
  struct Structure {
    std::unique_ptr<const ir::Program> program;
    std::vector<Outcome> outcomes;  // contested guards first
    std::vector<Varying> numbers;
    std::vector<int32_t> code;  // steps of the numbers
  };
  class Pairing;

  int32_t Share(const Recording& recording, int32_t step, std::vector<int32_t>& shared);
  // The steps that some need, in the order in which they are evaluated.
  std::vector<int32_t> CodeOf(absl::Span<const int32_t> needed) const;

  std::vector<Step> steps_;  // operands before what they are used in
  absl::flat_hash_map<Step, int32_t> step_ids_;
  std::vector<int32_t> constants_;
  std::vector<std::vector<int64_t>> tables_;
  std::vector<SharedGuard> guards_;
  std::vector<int32_t> guard_code_;  // also every decision
  std::vector<Structure> structures_;
};

// One thread's reading of a table, and the programs that it fills in.
class ReplayFrame {
 public:
  // `table` outlives it.
  explicit ReplayFrame(const ReplayTable* table) : table_(table) {}
  // Programs are pointed into.
  ReplayFrame(const ReplayFrame&) = delete;
  ReplayFrame& operator=(const ReplayFrame&) = delete;

  // The structure of each vector; −1: none of the table. REQUIRES vectors as long as the recorded
  // ones.
  absl::Span<const int> Match(DecisionLanes decisions);

  // What tells the vector of a lane from those of other structures: the same for vectors that the
  // guards in dispute do not tell apart. Of the last Match.
  uint64_t Signature(int lane) const;

  // The program of a vector that has a legal structure; valid until the next call. REQUIRES that
  // the last call of Match by this thread was of this frame.
  const ir::Program& ProgramOf(int lane);

 private:
  struct Place {
    int64_t* number;   // or
    ir::Index* index;  // its constant
    int32_t step;
  };
  struct Copy {
    ir::Program program;
    std::vector<Place> places;
  };
  class Places;

  void Run(absl::Span<const int32_t> code);

  const ReplayTable* const table_;
  std::vector<std::unique_ptr<Copy>> copies_;  // by structure; made when asked for
  DecisionLanes decisions_;
  std::vector<uint32_t> holds_;  // of each guard, a bit per lane
  std::vector<int> matched_;
  std::vector<bool> evaluated_;  // of each structure: the numbers of these lanes
};

}  // namespace hone::recorded

#endif  // HONE_COMMON_SCHEDULE_RECORDED_REPLAY_TABLE_H_
