#include "server/lab/run.h"

#include <algorithm>
#include <ctime>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "server/task/compiler_environment.h"
#include "server/task/task_search.h"

namespace hone::lab {
namespace {

// Maximum number of consecutive Proposes without a new candidate, as in a job.
constexpr int kMaxFruitless = 5;
constexpr uint64_t kDrawPurpose = 17;

double ThreadCpuMs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// One search in progress.
class Run {
 public:
  Run(const Bench& bench, const RunOptions& options, task::TaskSearch* search)
      : bench_(bench), options_(options), search_(search) {
    const int64_t eighth = options.trials / 8;
    batch_ =
        options.batch > 0 ? options.batch : static_cast<int>(std::clamp<int64_t>(eighth, 4, 32));
  }

  absl::StatusOr<RunResult> ToEnd() {
    // As at the start of a job, the default schedule is in progress and there are no results.
    // Related results are processed during the first batch.
    HONE_RETURN_IF_ERROR(Propose());
    HONE_RETURN_IF_ERROR(Train());
    HONE_RETURN_IF_ERROR(Propose());
    while (!waiting_.empty() && !found_) {
      Deliver();
      HONE_RETURN_IF_ERROR(Train());
      while (static_cast<int>(waiting_.size()) <= batch_ && MayPropose()) {
        HONE_RETURN_IF_ERROR(Propose());
      }
    }
    return std::move(result_);
  }

 private:
  struct Waiting {
    int64_t trial = 0;
    record::Candidate candidate;
    int measurement = 0;
  };

  bool MayPropose() const { return !result_.exhausted && proposed_ < options_.trials && !found_; }

  absl::Status Propose() {
    if (!MayPropose()) return absl::OkStatus();
    const int count = static_cast<int>(std::min<int64_t>(batch_, options_.trials - proposed_));
    const double begin = ThreadCpuMs();
    HONE_ASSIGN_OR_RETURN(task::ProposeEvent event, search_->Propose(count));
    const double spent = ThreadCpuMs() - begin;
    result_.propose_ms += spent;
    brain_ms_ += spent;
    int accepted = 0;
    for (task::Proposal& proposal : event.proposals) {
      const int measurement = bench_.Find(proposal.candidate);
      if (measurement < 0) {
        ++result_.outside;
        continue;
      }
      if (proposal.trial < 0 || !programs_.insert(measurement).second) {
        ++result_.duplicates;
        continue;
      }
      ++accepted;
      ++proposed_;
      waiting_.push_back({proposal.trial, std::move(proposal.candidate), measurement});
    }
    fruitless_ = accepted > 0 ? 0 : fruitless_ + 1;
    if (event.proposals.empty() || fruitless_ >= kMaxFruitless) result_.exhausted = true;
    return absl::OkStatus();
  }

  void Deliver() {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const Measurement& measured = bench_.set().measurements[next.measurement];
    search_->Tell(next.trial, {next.candidate, measured.outcome, measured.latency_ns});
    result_.trials.push_back({.outcome = measured.outcome,
                              .latency_ns = measured.latency_ns,
                              .build_ms = measured.build_ms,
                              .run_ms = measured.run_ms,
                              .brain_ms = std::exchange(brain_ms_, 0)});
    if (measured.outcome != record::Outcome::kOk) ++result_.failures;
    found_ = options_.stop_at_best && measured.outcome == record::Outcome::kOk &&
             measured.latency_ns <= bench_.best_latency_ns();
  }

  absl::Status Train() {
    if (!search_->TrainingIsDue() || found_) return absl::OkStatus();
    const double begin = ThreadCpuMs();
    HONE_ASSIGN_OR_RETURN(std::shared_ptr<const cost_model::CostModel> model,
                          search_->trainer()->Train(search_->TakeForTraining()));
    search_->AdoptModel(std::move(model));
    const double spent = ThreadCpuMs() - begin;
    result_.train_ms += spent;
    brain_ms_ += spent;
    return absl::OkStatus();
  }

  const Bench& bench_;
  const RunOptions& options_;
  task::TaskSearch* const search_;
  int batch_ = 0;
  std::deque<Waiting> waiting_;
  absl::flat_hash_set<int> programs_;
  int64_t proposed_ = 0;
  int fruitless_ = 0;
  bool found_ = false;
  double brain_ms_ = 0;
  RunResult result_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Bench>> Bench::Open(RecordedSet set) {
  auto bench = std::unique_ptr<Bench>(new Bench());
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(set.target));
  bench->builders_ = std::max(1, static_cast<int>(target.cores));
  HONE_ASSIGN_OR_RETURN(bench->spaces_,
                        task::OpenCompilerSpaces(set.spaces, set.target, /*threads=*/1));
  for (const std::string& text : set.spaces) bench->digests_.push_back(DigestOf(text).ToHex());
  for (const RecordedCandidate& candidate : set.candidates) {
    bench->measurements_.emplace(
        task::CandidateDigest({bench->digests_[candidate.space], candidate.decisions}),
        candidate.measurement);
  }
  bench->best_latency_ns_ = BestLatencyNs(set);
  bench->set_ = std::move(set);
  return bench;
}

int Bench::Find(const record::Candidate& candidate) const {
  const auto found = measurements_.find(task::CandidateDigest(candidate));
  return found == measurements_.end() ? -1 : found->second;
}

std::vector<search::Measured> Bench::Results() const {
  std::vector<search::Measured> results;
  for (const RecordedCandidate* candidate : FirstCandidates(set_)) {
    const Measurement& measured = set_.measurements[candidate->measurement];
    results.push_back({{digests_[candidate->space], candidate->decisions},
                       measured.outcome,
                       measured.latency_ns});
  }
  return results;
}

absl::StatusOr<std::string> Bench::SpaceText(const std::string& digest) const {
  const auto found = std::find(digests_.begin(), digests_.end(), digest);
  if (found == digests_.end()) return absl::NotFoundError(absl::StrCat("no space ", digest));
  return set_.spaces[found - digests_.begin()];
}

std::vector<search::Measured> DrawResults(std::vector<search::Measured> results, size_t count,
                                          uint64_t seed) {
  Rng rng(seed, kDrawPurpose);
  for (size_t i = results.size(); i > 1; --i) std::swap(results[i - 1], results[rng.Below(i)]);
  results.resize(std::min(results.size(), count));
  return results;
}

task::Transfer TransferFromSet(const Bench& related, const task::TaskSpaces& spaces,
                               uint64_t seed) {
  const task::RelatedWorkload workload{.results =
                                           DrawResults(related.Results(), kRelatedResults, seed)};
  return task::TransferFrom({workload}, spaces,
                            [&](const std::string& digest) { return related.SpaceText(digest); });
}

absl::StatusOr<RunResult> RunSearch(const Bench& bench, const RunOptions& options) {
  if (options.trials < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a run needs at least one trial, not ", options.trials));
  }
  const std::unique_ptr<task::TaskEnvironment> environment =
      task::MakeCompilerEnvironment(/*threads=*/1);
  std::shared_ptr<const task::Transfer> transfer;
  if (options.related != nullptr) {
    task::Transfer found = TransferFromSet(*options.related, bench.spaces(), options.seed);
    if (!options.related_seeds) found.seeds.clear();
    transfer = std::make_shared<const task::Transfer>(std::move(found));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<task::TaskSearch> search,
                        task::TaskSearch::Create(environment.get(), &bench.spaces(),
                                                 {.strategy = options.strategy,
                                                  .cost_model = options.cost_model,
                                                  .feature_set = options.feature_set,
                                                  .seed = options.seed,
                                                  .transfer = std::move(transfer)},
                                                 /*prior=*/{}));
  return Run(bench, options, search.get()).ToEnd();
}

}  // namespace hone::lab
