#ifndef HONE_SERVER_SEARCH_HISTORY_H_
#define HONE_SERVER_SEARCH_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/cost_model/byte_io.h"
#include "server/search/evaluator.h"
#include "server/search/point.h"

namespace hone::search {

// What a search has proposed and been told, in the order of the first mention. Used by one thread
// at a time.
class History {
 public:
  struct Entry {
    Point point;
    bool proposed = false;
    uint64_t event = 0;      // of the proposal
    bool predicted = false;  // a model that had learnt something ranked it
    double prediction = 0;
    bool told = false;
    bool ok = false;           // the latest result
    double latency_ns = 0;     // of it
    EvaluationPtr evaluation;  // null until Refresh
  };

  // `context` outlives it.
  explicit History(const SearchContext* context);

  // See SearchStrategy::Tell.
  void Tell(absl::Span<const Measured> results);
  // Replays what was told or restored, so that its programs count as known.
  void Refresh(Evaluator& evaluator);

  // Whether the candidate, or another one with the same program, was proposed or told. REQUIRES
  // Refresh since the last Tell.
  bool Knows(const Point& point) const { return index_.contains(KeyOf(*context_, point)); }
  bool KnowsProgram(const Evaluation& evaluation) const {
    return programs_.contains(evaluation.program);
  }
  // REQUIRES neither is known.
  void AddProposal(Point point, EvaluationPtr evaluation, uint64_t event, bool predicted,
                   double prediction);

  // Nullptr: neither proposed nor told.
  const Entry* Find(const Digest& key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &entries_[found->second];
  }

  const std::vector<Entry>& entries() const { return entries_; }
  // Whether no candidate of the space was proposed or told.
  bool IsUntried(int space) const { return tried_[space] == 0; }
  // The best results, at most `limit`, best first; ties in the order of mention.
  std::vector<const Entry*> Best(size_t limit) const;

  void Save(cost_model::ByteWriter& writer) const;
  // REQUIRES a history without entries. InvalidArgument: damaged, or of other design spaces.
  absl::Status Restore(cost_model::ByteReader& reader);

 private:
  Entry& At(const Point& point);

  const SearchContext* context_;
  absl::flat_hash_map<std::string, int> spaces_;  // by digest
  std::vector<Entry> entries_;
  absl::flat_hash_map<Digest, size_t> index_;
  absl::flat_hash_set<Digest> programs_;
  std::vector<int> tried_;  // per space: entries
  size_t fresh_ = 0;        // entries from here on may lack their evaluation
};

// Points and lists of them in saved states.
void WritePoint(cost_model::ByteWriter& writer, const Point& point);
void WritePoints(cost_model::ByteWriter& writer, absl::Span<const Point> points);
// InvalidArgument: damaged, a space that the context does not have, or another number of decisions
// than it takes.
absl::StatusOr<Point> ReadPoint(cost_model::ByteReader& reader, const SearchContext& context);
absl::StatusOr<std::vector<Point>> ReadPoints(cost_model::ByteReader& reader,
                                              const SearchContext& context);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_HISTORY_H_
