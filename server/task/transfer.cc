#include "server/task/transfer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "common/base/status_macros.h"
#include "server/task/plausible_latency.h"

namespace hone::task {
namespace {

constexpr int kMostResults = 2000;
constexpr int kMostScanned = 4000;  // of each query: confirmed rows are skipped
constexpr int kFew = 64;            // results of the own name; below, other names are looked at
constexpr size_t kSeeds = 8;        // the strategy proposes the first few that are new to it
constexpr int kAdaptations = 32;    // tried for them
constexpr int kPage = 1000;

bool Worked(const record::Record& record) {
  return record.result.outcome == record::Outcome::kOk &&
         IsPlausibleLatency(record::SteadyLatencyNs(record.result));
}

// The results of one related workload.
struct Related {
  double distance = 0;
  double best_ns = 0;
  std::vector<record::Record> records;  // newest first
};

class Gatherer {
 public:
  Gatherer(store::Store& store, const TaskEnvironment& environment, const TransferQuery& query)
      : store_(store), environment_(environment), query_(query) {}

  // Adds the newest results of `op` ("": of every name).
  absl::Status Scan(const std::string& op, int64_t before_id) {
    store::RecordQuery page{.target = query_.target_key,
                            .op = op,
                            .page_size = kPage,
                            .before_id = before_id,
                            .newest_first = true};
    for (int scanned = 0; scanned < kMostScanned && results_ < kMostResults;) {
      HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> records, store_.Query(page));
      for (const record::Record& record : records) {
        page.before_id = record.id;
        HONE_RETURN_IF_ERROR(Add(record));
      }
      scanned += static_cast<int>(records.size());
      if (static_cast<int>(records.size()) < kPage) break;
    }
    return absl::OkStatus();
  }
  int results() const { return results_; }

  // Related workloads, nearest first.
  std::vector<const Related*> Nearest() const {
    std::vector<const Related*> nearest;
    for (const auto& [digest, related] : related_) {
      if (!related.records.empty()) nearest.push_back(&related);
    }
    std::stable_sort(nearest.begin(), nearest.end(),
                     [](const Related* a, const Related* b) { return a->distance < b->distance; });
    return nearest;
  }

  // The text of a design space. NotFound: it is not stored.
  absl::StatusOr<std::string> Space(const std::string& digest) {
    auto found = spaces_.find(digest);
    if (found == spaces_.end()) found = spaces_.emplace(digest, store_.GetText(digest)).first;
    return found->second;
  }

 private:
  absl::Status Add(const record::Record& record) {
    if (results_ >= kMostResults || record.policy.name != "screen" || record.quarantined ||
        record.tolerance != query_.tolerance || record.workload_digest == query_.workload.digest ||
        !seen_.insert(record.id).second) {
      return absl::OkStatus();
    }
    auto [entry, fresh] = related_.try_emplace(record.workload_digest);
    Related& related = entry->second;
    if (fresh) {
      const absl::StatusOr<std::string> text = store_.GetText(record.workload_digest);
      if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
      related.distance = text.ok() ? environment_.Distance(query_.workload.text, *text) : INFINITY;
    }
    if (!std::isfinite(related.distance)) return absl::OkStatus();
    if (Worked(record)) {
      const double latency = record::SteadyLatencyNs(record.result);
      if (related.best_ns == 0 || latency < related.best_ns) related.best_ns = latency;
    }
    related.records.push_back(record);
    ++results_;
    return absl::OkStatus();
  }

  store::Store& store_;
  const TaskEnvironment& environment_;
  const TransferQuery& query_;
  std::map<std::string, Related> related_;  // by workload digest
  std::map<std::string, absl::StatusOr<std::string>> spaces_;
  std::set<int64_t> seen_;
  int results_ = 0;
};

// The best of each design space, best first.
std::vector<const record::Record*> BestOfSpaces(const Related& related) {
  std::vector<const record::Record*> sorted;
  for (const record::Record& record : related.records) {
    if (Worked(record)) sorted.push_back(&record);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return record::SteadyLatencyNs(a->result) < record::SteadyLatencyNs(b->result);
  });
  std::set<std::string> spaces;
  std::erase_if(sorted, [&](const record::Record* record) {
    return !spaces.insert(record->candidate.space_digest).second;
  });
  return sorted;
}

// The best of the nearest workload first, then its second and the best of the second workload, …
void PickSeeds(Gatherer& gatherer, const std::vector<const Related*>& nearest,
               const TaskSpaces& spaces, Transfer* transfer) {
  std::vector<std::vector<const record::Record*>> bests;
  for (const Related* related : nearest) {
    bests.push_back(BestOfSpaces(*related));
    if (bests.size() == kSeeds) break;
  }
  int tries = 0;
  for (size_t diagonal = 0; diagonal < 2 * kSeeds; ++diagonal) {
    for (size_t w = 0; w <= diagonal && w < bests.size(); ++w) {
      if (diagonal - w >= bests[w].size()) continue;
      if (transfer->seeds.size() >= kSeeds || ++tries > kAdaptations) return;
      const record::Candidate& candidate = bests[w][diagonal - w]->candidate;
      const absl::StatusOr<std::string> space = gatherer.Space(candidate.space_digest);
      if (!space.ok()) continue;
      absl::StatusOr<record::Candidate> seed = spaces.Adapt(*space, candidate.decisions);
      if (!seed.ok()) continue;
      auto& seeds = transfer->seeds;
      if (std::find(seeds.begin(), seeds.end(), *seed) == seeds.end()) {
        seeds.push_back(*std::move(seed));
      }
    }
  }
}

}  // namespace

absl::StatusOr<Transfer> GatherTransfer(store::Store& store, const TaskEnvironment& environment,
                                        const TaskSpaces& spaces, const TransferQuery& query) {
  Transfer transfer;
  if (query.up_to_record >= 0) {
    transfer.last_record = query.up_to_record;
  } else {
    HONE_ASSIGN_OR_RETURN(
        const std::vector<record::Record> newest,
        store.Query({.target = query.target_key, .page_size = 1, .newest_first = true}));
    if (!newest.empty()) transfer.last_record = newest[0].id;
  }
  if (transfer.last_record == 0) return transfer;
  Gatherer gatherer(store, environment, query);
  HONE_RETURN_IF_ERROR(gatherer.Scan(query.workload.op, transfer.last_record + 1));
  if (gatherer.results() < kFew) {
    HONE_RETURN_IF_ERROR(gatherer.Scan("", transfer.last_record + 1));
  }
  const std::vector<const Related*> nearest = gatherer.Nearest();
  PickSeeds(gatherer, nearest, spaces, &transfer);
  for (const Related* related : nearest) {
    if (related->best_ns == 0) continue;  // nothing to compare failures with
    ++transfer.workloads;
    std::map<std::string, Transfer::Space> by_space;
    for (const record::Record& record : related->records) {
      const bool ok = Worked(record);
      Transfer::Space& space = by_space[record.candidate.space_digest];
      space.decisions.push_back(record.candidate.decisions);
      space.scores.push_back(ok ? related->best_ns / record::SteadyLatencyNs(record.result) : 0);
    }
    for (auto& [digest, results] : by_space) {
      absl::StatusOr<std::string> text = gatherer.Space(digest);
      if (!text.ok()) continue;
      results.text = *std::move(text);
      transfer.results += static_cast<int>(results.scores.size());
      transfer.spaces.push_back(std::move(results));
    }
  }
  return transfer;
}

}  // namespace hone::task
