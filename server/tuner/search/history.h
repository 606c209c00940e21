#ifndef HONE_SERVER_TUNER_SEARCH_HISTORY_H_
#define HONE_SERVER_TUNER_SEARCH_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/tuner/search/evaluator.h"

namespace hone::search {

// The candidates that a search has proposed or been told about, in the order in which they first
// appeared. Used by one thread at a time.
class History {
 public:
  struct Entry {
    Point point;
    uint64_t event = 0;      // the event of the proposal; 0 if it was only told
    bool predicted = false;  // a trained model scored the candidate before the proposal
    double prediction = 0;
    bool told = false;
    bool ok = false;           // whether the latest result is a success
    double latency_ns = 0;     // of the latest result
    EvaluationPtr evaluation;  // null until Refresh
  };

  // `context` outlives the history.
  explicit History(const SearchContext* context);

  // See SearchStrategy::Tell.
  void Tell(absl::Span<const Measured> results);
  // Evaluates the candidates that were told or restored, which makes their programs known.
  absl::Status Refresh(Evaluator& evaluator);

  // Whether the candidate was proposed or told.
  bool Knows(const Point& point) const { return index_.contains(KeyOf(*context_, point)); }
  // Whether a candidate with the same program was proposed or told. REQUIRES: Refresh was called
  // after the last Tell.
  bool KnowsProgram(const Evaluation& evaluation) const {
    return programs_.contains(evaluation.program);
  }
  // REQUIRES: neither the candidate nor its program is known.
  void AddProposal(Point point, EvaluationPtr evaluation, uint64_t event, bool predicted,
                   double prediction);

  // Returns null if the candidate was neither proposed nor told.
  const Entry* Find(const Digest& key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &entries_[found->second];
  }

  const std::vector<Entry>& entries() const { return entries_; }
  // Returns the number of results.
  int64_t Told() const {
    return absl::c_count_if(entries_, [](const Entry& each) { return each.told; });
  }
  // Whether the space has no candidate that was proposed or told.
  bool IsUntried(int space) const { return tried_[space] == 0; }
  // Returns the `limit` best successful results, or all if there are fewer, best first. Equal
  // results keep the order of entries().
  std::vector<const Entry*> Best(size_t limit) const;

 private:
  Entry& At(const Point& point);

  const SearchContext* context_;
  absl::flat_hash_map<std::string, int> spaces_;  // indices by digest
  std::vector<Entry> entries_;
  absl::flat_hash_map<Digest, size_t> index_;
  absl::flat_hash_set<Digest> programs_;
  std::vector<int> tried_;  // number of entries per space
  size_t fresh_ = 0;        // entries from this index on may have no evaluation
};

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_HISTORY_H_
