#include "server/confirm/leader.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/record/processes.h"
#include "server/confirm/finalist.h"
#include "server/job/search/task_search.h"

namespace hone::job {
namespace {

constexpr size_t kMostChallengers = 16;
// Candidates that look only a little faster are left to the confirmation at the end.
constexpr double kWorthwhile = 0.98;
// The number of processes for challengers: a fixed number, plus one for this many trials.
constexpr int64_t kFirstProcesses = 12;
constexpr int64_t kTrialsPerProcess = 4;
// A challenger with this many disturbed processes is given up; the confirmation measures it again.
constexpr int kMostDisturbed = 4;

}  // namespace

double Leader::LatencyNs() const {
  return leader_ ? record::SteadyLatencyNs(leader_->result)
                 : std::numeric_limits<double>::infinity();
}

void Leader::Add(Screened screened, int64_t trials) {
  allowed_ = kFirstProcesses + trials / kTrialsPerProcess;
  if (screened.latency_ns >= kWorthwhile * LatencyNs()) return;
  const std::string& program = screened.record.result.facts.program_digest;
  if (leader_ && !program.empty() && program == leader_->result.facts.program_digest) return;
  const auto place = std::find_if(waiting_.begin(), waiting_.end(), [&](const Screened& other) {
    return other.latency_ns <= screened.latency_ns;
  });
  waiting_.insert(place, std::move(screened));
  if (waiting_.size() > kMostChallengers) waiting_.erase(waiting_.begin());
}

const Screened* Leader::NextChallenger() {
  if (challenger_ || waiting_.empty() || used_ >= allowed_) return nullptr;
  challenger_ = Challenge{.screened = std::move(waiting_.back())};
  waiting_.pop_back();
  return &challenger_->screened;
}

bool Leader::Report(const record::Record& record) {
  ++used_;
  if (record.result.outcome != record::Outcome::kOk) {
    Withdraw();
    return false;
  }
  Challenge& challenge = *challenger_;
  if (record.quarantined) {
    if (++challenge.disturbed >= kMostDisturbed) Withdraw();
    return false;
  }
  challenge.rounds.push_back(record);
  // The build's facts are not in the result of an artifact that was built before.
  challenge.rounds.back().result.facts = challenge.screened.record.result.facts;
  const bool faster = record::SteadyLatencyNs(record.result) < LatencyNs();
  if (faster && challenge.rounds.size() < record::kProcesses) return false;
  if (faster) Lead(challenge.rounds);
  challenger_.reset();
  return faster;
}

void Leader::Restore(const std::vector<record::Record>& rounds) {
  if (rounds.size() >= record::kProcesses) Lead(rounds);
}

void Leader::Lead(const std::vector<record::Record>& rounds) {
  std::vector<record::MeasureResult> results;
  double slowest = 0;
  for (const record::Record& round : rounds) {
    results.push_back(round.result);
    slowest = std::max(slowest, record::SteadyLatencyNs(round.result));
  }
  if (slowest >= LatencyNs()) return;
  leader_ = rounds.back();
  leader_->id = 0;  // this combined record is not stored
  leader_->quarantined = false;
  leader_->quarantine_reason.clear();
  leader_->result = record::MedianOfProcesses(results);
  leader_->result.detail = absl::StrCat("the slowest of ", rounds.size(), " processes");
  leader_->result.latency_ns = slowest;
  leader_->result.reference_drift = 1;
  std::erase_if(waiting_,
                [&](const Screened& other) { return other.latency_ns >= kWorthwhile * slowest; });
}

void Challenges::Continue() {
  if (job_.state().state != JobState::kRunning || stopping_) return;
  if (leader_.NextChallenger() != nullptr) Measure();
}

void Challenges::Measure() {
  const Screened& challenger = leader_.challenger();
  const record::Record& screened = challenger.record;
  fleet::WorkItem item =
      task_.MakeItem(screened.candidate, task_.SpaceText(screened.candidate.space_digest));
  item.policy = ConfirmPolicy();
  item.artifact_digest = screened.result.artifact_digest;
  item.builder = fleet::BuilderOf(screened.environment);
  item.worker_id = challenger.worker_id;
  task_.Measure(
      std::move(item), task_.MakeRecord(screened.candidate, screened.trial), /*event=*/-1,
      record::SteadyLatencyNs(screened.result),
      [this](const record::Record& record, const std::string&) { OnMeasured(record); },
      [this](const absl::Status&) {
        if (job_.state().state == JobState::kRunning && leader_.IsBusy()) Withdraw();
      });
}

void Challenges::OnMeasured(const record::Record& record) {
  if (job_.state().state != JobState::kRunning || !leader_.IsBusy()) return;
  job_.SetDoing("confirming the leader");
  if (record.result.outcome == record::Outcome::kOk && !record.quarantined) {
    screened_.AddProcesses({record});
  }
  if (leader_.Report(record)) on_leader_();
  if (leader_.IsBusy() && !stopping_) return Measure();
  Withdraw();
}

void Challenges::Withdraw() {
  leader_.Withdraw();
  on_done_();
}

void Challenges::Restore(const std::vector<record::Record>& again) {
  std::map<Digest, std::vector<record::Record>> of;  // by candidate
  for (const record::Record& record : again) {
    of[CandidateDigest(record.candidate)].push_back(record);
  }
  for (const auto& [digest, rounds] : of) {
    screened_.AddProcesses(rounds);
    if (!rounds[0].is_default) leader_.Restore(rounds);
  }
}

}  // namespace hone::job
