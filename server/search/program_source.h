#ifndef HONE_SERVER_SEARCH_PROGRAM_SOURCE_H_
#define HONE_SERVER_SEARCH_PROGRAM_SOURCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/schedule/recorded/recorded_replay.h"
#include "common/schedule/recorded/replay_table.h"
#include "server/search/point.h"

namespace hone::search {

// The programs of candidates: by replay, or, where the context asks for feature programs, mostly
// without one: of each design space it keeps the structures that candidates had
// (common/schedule/recorded) and fills in their numbers. What comes out is what Replay gives; which
// way was taken shows in the time alone.
//
// Rounds: any number of threads call Visit, each with a number of its own; then one calls Settle.
class ProgramSource {
 public:
  // `context` outlives it.
  explicit ProgramSource(const SearchContext* context);
  ~ProgramSource();

  // Calls visit(i, program) once for each point, in any order; null where the replay is refused.
  void Visit(size_t thread, absl::Span<const Point* const> points,
             absl::FunctionRef<void(size_t, const ir::Program*)> visit);

  // Takes up the structures that threads met.
  void Settle();

  // What Visit was asked for, and how many of it were replayed and recorded.
  struct Counts {
    int64_t points = 0, replayed = 0, recorded = 0;
  };
  Counts counts() const;

 private:
  // A structure that a thread met in this round.
  struct Met {
    std::vector<int64_t> decisions;
    recorded::Recording recording;
    std::unique_ptr<const ir::Program> program;
  };
  // What one thread has of one space.
  struct Worker {
    std::unique_ptr<recorded::ReplayFrame> frame;
    std::vector<Met> met;
    // Vectors that were replayed and not recorded, and how many have each signature in a table of
    // `known` structures.
    std::vector<std::vector<int64_t>> replayed;
    absl::flat_hash_map<uint64_t, int> signatures;
    int known = -1;
    Counts counts;  // of this round
  };
  struct Space {
    std::unique_ptr<const recorded::RecordedReplay> replay;  // null: only replays
    std::unique_ptr<recorded::ReplayTable> table;
    std::vector<Worker> workers;
    Counts counts;
  };

  void VisitBatch(Space& space, Worker& worker, absl::Span<const Point* const> points,
                  absl::Span<const size_t> batch,
                  absl::FunctionRef<void(size_t, const ir::Program*)> visit);
  // Brings a worker's signatures up to its table.
  static void Refresh(const Space& space, Worker& worker);
  // Whether what was replayed is worth a recording.
  static bool Pays(const Space& space, Worker& worker, const Point& point, uint64_t signature);

  const SearchContext* const context_;
  std::vector<Space> spaces_;
};

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_PROGRAM_SOURCE_H_
