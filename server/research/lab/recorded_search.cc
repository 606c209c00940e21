#include "server/research/lab/recorded_search.h"

#include <ctime>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "server/job/actor/compiler_environment.h"

namespace hone::lab {
namespace {

// Maximum number of consecutive Proposes without a new candidate, as in a job.
constexpr int kMaxFruitless = 5;

double ThreadCpuMs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordedSearch>> RecordedSearch::Create(const Bench& bench,
                                                                       const RunOptions& options) {
  auto run = absl::WrapUnique(new RecordedSearch(bench, options.stop_at_best));
  run->environment_ = job::MakeCompilerEnvironment(/*threads=*/1);
  std::shared_ptr<const job::Transfer> transfer;
  if (options.related != nullptr) {
    job::Transfer found = TransferFromSet(*options.related, bench.spaces(), options.seed);
    if (!options.related_seeds) found.seeds.clear();
    transfer = std::make_shared<const job::Transfer>(std::move(found));
  }
  HONE_ASSIGN_OR_RETURN(run->search_,
                        job::TaskSearch::Create(run->environment_.get(), &bench.spaces(),
                                                {.strategy = options.strategy,
                                                 .cost_model = options.cost_model,
                                                 .feature_set = options.feature_set,
                                                 .seed = options.seed,
                                                 .transfer = std::move(transfer)},
                                                /*prior=*/{}));
  return run;
}

absl::Status RecordedSearch::Propose(int count) {
  if (result_.exhausted || found_) return absl::OkStatus();
  const double begin = ThreadCpuMs();
  HONE_ASSIGN_OR_RETURN(job::ProposeEvent event, search_->Propose(count));
  const double spent = ThreadCpuMs() - begin;
  result_.propose_ms += spent;
  brain_ms_ += spent;
  int accepted = 0;
  for (job::Proposal& proposal : event.proposals) {
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

void RecordedSearch::Deliver() {
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
  found_ = stop_at_best_ && measured.outcome == record::Outcome::kOk &&
           measured.latency_ns <= bench_.best_latency_ns();
}

absl::Status RecordedSearch::Train() {
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

}  // namespace hone::lab
