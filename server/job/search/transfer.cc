#include "server/job/search/transfer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "common/base/status_macros.h"
#include "server/job/search/recorded_task.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

constexpr int kMostResults = 2000;
constexpr int kMostScanned = 4000;  // rows per query, including confirmed ones, which are skipped
constexpr int kFew = 64;            // with fewer results of the same name, other names are used
constexpr size_t kSeeds = 8;        // the strategy proposes the first few new ones
constexpr int kAdaptations = 32;    // maximum attempts for them
constexpr int kPage = 1000;

bool Worked(const search::Measured& measured) {
  return measured.outcome == record::Outcome::kOk && IsPlausibleLatency(measured.latency_ns);
}

// Finds related workloads and their newest results.
class Gatherer {
 public:
  Gatherer(store::Store& store, const TaskEnvironment& environment, const TransferQuery& query)
      : store_(store), environment_(environment), query_(query) {}

  // Adds the newest results of workloads named `op`, or of all workloads if `op` is "".
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

  // Returns the related workloads, nearest first.
  std::vector<RelatedWorkload> Nearest() && {
    std::vector<RelatedWorkload> nearest;
    for (auto& [digest, related] : related_) {
      if (!related.results.empty()) nearest.push_back(std::move(related));
    }
    std::stable_sort(nearest.begin(), nearest.end(),
                     [](const auto& a, const auto& b) { return a.distance < b.distance; });
    return nearest;
  }

 private:
  absl::Status Add(const record::Record& record) {
    if (results_ >= kMostResults || record.policy.name != "screen" || record.quarantined ||
        record.tolerance != query_.tolerance || record.workload_digest == query_.workload.digest ||
        !seen_.insert(record.id).second) {
      return absl::OkStatus();
    }
    auto [entry, fresh] = related_.try_emplace(record.workload_digest);
    RelatedWorkload& related = entry->second;
    if (fresh) {
      const absl::StatusOr<std::string> text = store_.GetText(record.workload_digest);
      if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
      related.distance = text.ok() ? environment_.Distance(query_.workload.text, *text) : INFINITY;
    }
    if (!std::isfinite(related.distance)) return absl::OkStatus();
    related.results.push_back(
        {record.candidate, record.result.outcome, record::SteadyLatencyNs(record.result)});
    ++results_;
    return absl::OkStatus();
  }

  store::Store& store_;
  const TaskEnvironment& environment_;
  const TransferQuery& query_;
  std::map<std::string, RelatedWorkload> related_;  // by workload digest
  std::set<int64_t> seen_;
  int results_ = 0;
};

// Caches the texts of design spaces.
class SpaceTexts {
 public:
  using Source = absl::FunctionRef<absl::StatusOr<std::string>(const std::string& digest)>;
  explicit SpaceTexts(Source source) : source_(source) {}
  const absl::StatusOr<std::string>& Find(const std::string& digest) {
    auto found = texts_.find(digest);
    if (found == texts_.end()) found = texts_.emplace(digest, source_(digest)).first;
    return found->second;
  }

 private:
  const Source source_;
  std::map<std::string, absl::StatusOr<std::string>> texts_;
};

// Returns the best result of each design space, best first.
std::vector<const search::Measured*> BestOfSpaces(const RelatedWorkload& related) {
  std::vector<const search::Measured*> sorted;
  for (const search::Measured& measured : related.results) {
    if (Worked(measured)) sorted.push_back(&measured);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->latency_ns < b->latency_ns; });
  std::set<std::string> spaces;
  std::erase_if(sorted, [&](const search::Measured* measured) {
    return !spaces.insert(measured->candidate.space_digest).second;
  });
  return sorted;
}

// Adds the seeds: first the best candidate of the nearest workload, then its second best and the
// best of the second nearest workload, and so on.
void PickSeeds(absl::Span<const RelatedWorkload> nearest, const TaskSpaces& spaces,
               SpaceTexts& texts, Transfer* transfer) {
  std::vector<std::vector<const search::Measured*>> bests;
  for (const RelatedWorkload& related : nearest) {
    bests.push_back(BestOfSpaces(related));
    if (bests.size() == kSeeds) break;
  }
  int tries = 0;
  for (size_t diagonal = 0; diagonal < 2 * kSeeds; ++diagonal) {
    for (size_t w = 0; w <= diagonal && w < bests.size(); ++w) {
      if (diagonal - w >= bests[w].size()) continue;
      if (transfer->seeds.size() >= kSeeds || ++tries > kAdaptations) return;
      const record::Candidate& candidate = bests[w][diagonal - w]->candidate;
      const absl::StatusOr<std::string>& space = texts.Find(candidate.space_digest);
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

// Adds one workload's results for training a model, each relative to the workload's best.
void AddResults(const RelatedWorkload& related, SpaceTexts& texts, Transfer* transfer) {
  double best = 0;
  for (const search::Measured& measured : related.results) {
    if (Worked(measured) && (best == 0 || measured.latency_ns < best)) best = measured.latency_ns;
  }
  if (best == 0) return;  // scores are relative to the best latency
  ++transfer->workloads;
  std::map<std::string, Transfer::Space> by_space;
  for (const search::Measured& measured : related.results) {
    Transfer::Space& space = by_space[measured.candidate.space_digest];
    space.decisions.push_back(measured.candidate.decisions);
    space.scores.push_back(Worked(measured) ? best / measured.latency_ns : 0);
  }
  for (auto& [digest, results] : by_space) {
    const absl::StatusOr<std::string>& text = texts.Find(digest);
    if (!text.ok()) continue;
    results.text = *text;
    transfer->results += static_cast<int>(results.scores.size());
    transfer->spaces.push_back(std::move(results));
  }
}

// Finds the stored model that a task starts from. NotFound: the store has no such model.
absl::StatusOr<store::ModelRow> FindModel(store::Store& store, const TransferQuery& query,
                                          const cost_model::CostModel& model) {
  if (query.model_id > 0) return store.GetModelById(query.model_id);
  store::ModelKey key{.name = std::string(model.name()),
                      .feature_set = std::string(model.feature_set()),
                      .target = query.target_key,
                      .scope = query.workload.op};
  absl::StatusOr<store::ModelRow> row = store.GetModel(key);
  if (row.ok() || !absl::IsNotFound(row.status())) return row;
  key.scope.clear();
  return store.GetModel(key);
}

absl::Status AddModel(store::Store& store, const TaskEnvironment& environment,
                      const TransferQuery& query, Transfer* transfer) {
  if (query.cost_model.empty() || query.model_id == 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(
      std::unique_ptr<cost_model::CostModel> model,
      environment.CreateModel(query.cost_model, {.feature_set = query.feature_set}));
  if (model->feature_set().empty()) return absl::OkStatus();  // it does not learn
  const absl::StatusOr<store::ModelRow> row = FindModel(store, query, *model);
  if (absl::IsNotFound(row.status())) return absl::OkStatus();
  if (!row.ok()) return row.status();
  if (const absl::Status loaded = model->Load(row->bytes); !loaded.ok()) {
    spdlog::warn("stored model {} ({}, {}) is not used: {}", row->id, row->key.name,
                 row->key.feature_set, loaded.ToString());
    return absl::OkStatus();
  }
  transfer->model = std::move(model);
  transfer->model_id = row->id;
  return absl::OkStatus();
}

}  // namespace

Transfer TransferFrom(
    absl::Span<const RelatedWorkload> nearest, const TaskSpaces& spaces,
    absl::FunctionRef<absl::StatusOr<std::string>(const std::string& digest)> text) {
  Transfer transfer;
  SpaceTexts texts(text);
  PickSeeds(nearest, spaces, texts, &transfer);
  for (const RelatedWorkload& related : nearest) AddResults(related, texts, &transfer);
  return transfer;
}

absl::StatusOr<Transfer> GatherTransfer(store::Store& store, const TaskEnvironment& environment,
                                        const TaskSpaces& spaces, const TransferQuery& query) {
  int64_t last_record = query.up_to_record;
  if (last_record < 0) {
    HONE_ASSIGN_OR_RETURN(
        const std::vector<record::Record> newest,
        store.Query({.target = query.target_key, .page_size = 1, .newest_first = true}));
    last_record = newest.empty() ? 0 : newest[0].id;
  }
  Transfer transfer;
  if (last_record > 0) {
    Gatherer gatherer(store, environment, query);
    HONE_RETURN_IF_ERROR(gatherer.Scan(query.workload.op, last_record + 1));
    if (gatherer.results() < kFew) {
      HONE_RETURN_IF_ERROR(gatherer.Scan("", last_record + 1));
    }
    transfer = TransferFrom(std::move(gatherer).Nearest(), spaces,
                            [&](const std::string& digest) { return store.GetText(digest); });
  }
  transfer.last_record = last_record;
  HONE_RETURN_IF_ERROR(AddModel(store, environment, query, &transfer));
  return transfer;
}

}  // namespace hone::job
