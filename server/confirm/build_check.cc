#include "server/confirm/build_check.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

// A candidate is built again so often, in case builds fail.
constexpr int kMostBuilds = 3;
// How long one worker may take before the next one is asked.
constexpr absl::Duration kPatience = absl::Seconds(30);
// How long a job that is over waits for a builder.
constexpr absl::Duration kLastBuild = absl::Seconds(5);

}  // namespace

BuildCheck::State BuildCheck::Check(const BuiltCandidate& built) {
  const absl::Time now = job_.Steady();
  if (built.artifact_digest != built_.artifact_digest) {
    built_ = built;
    state_ = State::kOpen;
    why_.clear();
    waits_ = false;
    attempts_ = 0;
    slow_.clear();
    began_ = now;
  }
  if (state_ != State::kOpen) return state_;
  const bool is_over = job_.state().cancelled && job_.TimeLeft() <= absl::ZeroDuration();
  const fleet::Fleet& fleet = *job_.services().fleet;
  if (waits_) {
    const absl::Time limit = asked_at_ + (is_over ? kLastBuild : kPatience);
    if (now < limit && fleet.Answers(worker_)) return state_;
    spdlog::warn("job {}: worker {}, which builds {} again, does not answer", job_.id(), worker_,
                 built_.name);
    slow_.push_back(worker_);
    waits_ = false;
  }
  built_by_ = fleet.BuilderOf(built_.artifact_digest);
  if (built_by_.empty()) built_by_ = built_.worker_id;
  const auto rebuilder = [&] {
    return fleet.Rebuilder(job_.spec().target_key, built_.builder, built_by_, slow_);
  };
  std::string worker = rebuilder();
  if (worker.empty() && !slow_.empty()) {
    // All were asked; those that answer by now may be asked again.
    std::erase_if(slow_, [&](const std::string& slow) { return fleet.Answers(slow); });
    worker = rebuilder();
  }
  const absl::Duration patience = is_over ? kLastBuild : job_.options().spot_check_limit;
  if (!worker.empty() && attempts_ < kMostBuilds) {
    Ask(worker);
  } else if (attempts_ >= kMostBuilds || now >= began_ + patience) {
    state_ = State::kRefused;
    why_ = absl::StrCat("no builder of its version built ", built_.name,
                        " again in time, so that its artifact could not be compared");
  }
  return state_;
}

void BuildCheck::Ask(const std::string& worker) {
  fleet::WorkItem item = task_.MakeItem(built_.candidate, built_.space);
  item.best_latency_ns = nullptr;
  item.only_digest = true;
  item.worker_id = worker;
  worker_ = worker;
  waits_ = true;
  asked_at_ = job_.Steady();
  ++attempts_;
  job_.SetPhase({PhaseKind::kCheckingWinner, worker});
  job_.services().fleet->Submit(
      std::move(item),
      [this, asked = ++asked_, self = job_.shared_from_this()](
          absl::StatusOr<fleet::WorkResult> result, fleet::Acknowledge acknowledge) {
        if (result.ok()) std::move(acknowledge)();
        self->Post([this, asked, result = std::move(result)] { OnBuilt(asked, result); });
      });
}

void BuildCheck::OnBuilt(int asked, const absl::StatusOr<fleet::WorkResult>& result) {
  if (state_ != State::kOpen || asked != asked_ || !waits_) return;
  if (job_.state().state != JobState::kConfirming) return;
  waits_ = false;
  // A build that failed, or one of another version, says nothing about the artifact.
  if (!result.ok() || result->result.outcome != record::Outcome::kOk ||
      fleet::BuilderOf(result->environment) != built_.builder) {
    spdlog::warn("job {}: {} was not built again: {}", job_.id(), built_.name,
                 result.ok() ? result->result.detail : std::string(result.status().message()));
    if (!absl::IsResourceExhausted(result.status())) return on_news_();
    --attempts_;  // the fleet had no room; the next tick asks again
    return;
  }
  const std::string& digest = result->result.artifact_digest;
  if (digest == built_.artifact_digest) {
    state_ = State::kSame;
    spdlog::info("job {}: {} built the artifact of {} again in {} ms, and it is the same",
                 job_.id(), result->worker_id, built_.name,
                 absl::ToInt64Milliseconds(job_.Steady() - asked_at_));
  } else {
    state_ = State::kRefused;
    job_.services().fleet->NoteBuildMismatch();
    why_ = absl::StrCat("the artifact of ", built_.name, " is not used: ", built_by_, " built ",
                        built_.artifact_digest, ", and ", result->worker_id, " built ", digest,
                        " from the same trace; one of the two is wrong");
    spdlog::warn("job {}: {}", job_.id(), why_);
  }
  on_news_();
}

}  // namespace hone::job
