#include "worker/agent/worker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/steady_clock.h"
#include "common/record/proto_convert.h"

namespace hone::agent {
namespace {

using record::MeasureResult;
using record::Outcome;

constexpr absl::Duration kNewsInterval =
    absl::Milliseconds(5);  // finished results wait this long for others
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLastBackoff = absl::Seconds(5);
// How long an upload is retried while the server has no room for it.
constexpr absl::Duration kUploadPatience = absl::Minutes(1);
constexpr absl::Duration kReferenceRetry = absl::Seconds(30);
constexpr absl::Duration kFarewell = absl::Seconds(1);
constexpr absl::Duration kPulse = absl::Milliseconds(100);
constexpr size_t kPinnedReferences = 16;
constexpr size_t kMaxCalls = 2;  // one that the server holds, and one with news
// The server answers a call with results when they are durable, within milliseconds. Results that
// finish meanwhile wait this long for the answer, so a busy server gets fewer calls with more in
// each.
constexpr absl::Duration kAnswerPatience = absl::Seconds(1);

std::string RandomHex() {
  std::random_device device;
  const uint64_t value = static_cast<uint64_t>(device()) << 32 | device();
  return absl::StrCat(absl::Hex(value, absl::kZeroPad16));
}

// The delay after consecutive failures. It is random, so many workers do not return at once.
absl::Duration BackoffAfter(int failures) {
  std::random_device device;
  const double jitter = 0.5 + static_cast<double>(device() % 1024) / 1024;
  return std::min(kFirstBackoff * (1 << std::min(failures, 10)), kLastBackoff) * jitter;
}

MeasureResult Failure(Outcome outcome, absl::string_view detail) {
  MeasureResult result;
  result.outcome = outcome;
  result.detail = std::string(detail);
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Create(WorkerOptions options, ServerLink* link) {
  HONE_ASSIGN_OR_RETURN(auto artifacts, BoundedDir::Open(options.state_dir + "/artifacts",
                                                         options.max_artifact_bytes));
  HONE_ASSIGN_OR_RETURN(auto references, BoundedDir::Open(options.state_dir + kReferences,
                                                          options.max_reference_bytes));
  HONE_ASSIGN_OR_RETURN(auto spool, Spool::Open(options.state_dir + "/spool"));
  auto worker = std::unique_ptr<Worker>(new Worker(std::move(options), link, std::move(artifacts),
                                                   std::move(references), std::move(spool)));
  absl::MutexLock lock(&worker->mutex_);
  for (v1::FinishedLease& finished : worker->spool_->Load()) {
    worker->leases_.AddFinished(std::move(finished));
  }
  return worker;
}

Worker::Worker(WorkerOptions options, ServerLink* link, std::unique_ptr<BoundedDir> artifacts,
               std::unique_ptr<BoundedDir> references, std::unique_ptr<Spool> spool)
    : options_(std::move(options)),
      epoch_(RandomHex()),
      link_(link),
      artifacts_(std::move(artifacts)),
      references_(std::move(references)),
      spool_(std::move(spool)),
      leases_({.builds = options_.capabilities.can_build()
                             ? 4 * options_.capabilities.build_slots() + 2 * options_.batch
                             : 0,
               .runs = options_.capabilities.can_run() ? 2 * options_.batch : 0}) {}

Worker::~Worker() { Stop(); }

void Worker::Stop() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

// --- Synchronize ---

absl::Time Worker::NextCall() const {
  if (calls_.size() >= kMaxCalls) return absl::InfiniteFuture();
  const bool news = news_ || leases_.HasNews();
  absl::Time next = next_call_;
  if (leases_.IsStocked()) next = std::max(next, gather_until_);
  if (calls_.empty()) return news ? next : std::max(next_call_, next_idle_call_);
  if (!news) return absl::InfiniteFuture();
  for (const auto& [number, call] : calls_) {
    if (call.results) next = std::max(next, call.begun + kAnswerPatience);
  }
  return next;
}

void Worker::StartCall() {
  v1::SynchronizeRequest request;
  request.set_worker_id(options_.worker_id);
  request.set_epoch(epoch_);
  *request.mutable_capabilities() = options_.capabilities;
  leases_.Describe(stopping_, request);
  request.set_max_wait_ms(stopping_ ? 0 : absl::ToInt64Milliseconds(heartbeat_));
  news_ = false;
  const absl::Time now = SteadyNow();
  next_call_ = now + kNewsInterval;
  const int64_t number = ++last_call_;
  calls_[number] = {.begun = now, .results = request.finished_size() > 0};
  leases_.CallBegins(number, request);
  // The callback may run before Synchronize returns.
  mutex_.Unlock();
  link_->Synchronize(request, [this, number](absl::StatusOr<v1::SynchronizeResponse> response) {
    Answered(number, std::move(response));
  });
  mutex_.Lock();
}

void Worker::Answered(int64_t number, absl::StatusOr<v1::SynchronizeResponse> response) {
  if (response.ok()) {
    // The server has these results. They are removed from disk before a call that reports this can
    // be answered.
    for (const std::string& lease_id : response->durable()) spool_->Remove(lease_id);
  }
  absl::MutexLock lock(&mutex_);
  const absl::Time begun = calls_.at(number).begun;
  calls_.erase(number);
  leases_.CallEnds(number, response.ok());
  const absl::Time now = SteadyNow();
  if (!response.ok()) {
    if (stopping_) return;
    // The call's contents may be lost, so they are sent again.
    news_ = true;
    next_call_ = std::max(next_call_, now + BackoffAfter(failures_));
    if (failures_++ == 0) {
      spdlog::warn("the server does not answer: {}", response.status().ToString());
    }
    return;
  }
  if (failures_ > 0) {
    spdlog::info("the server answers again");
    // The server may be a new one without references, or may now have those that could not be
    // fetched.
    offered_.clear();
    reference_errors_.clear();
  }
  failures_ = 0;
  if (response->heartbeat_ms() > 0) heartbeat_ = absl::Milliseconds(response->heartbeat_ms());
  Heed(*response);
  const LeaseTable::News news = leases_.Apply(*response, now);
  for (const std::string& digest : news.released) artifacts_->Unpin(digest);
  for (const std::string& digest : response->keep_artifacts()) {
    if (std::find(uploads_.begin(), uploads_.end(), digest) == uploads_.end()) {
      uploads_.push_back(digest);
    }
  }
  // An overtaken call does not set the time of the next one.
  if (number == last_call_) {
    next_idle_call_ = now + absl::Milliseconds(response->next_call_ms());
    gather_until_ = begun + absl::Milliseconds(response->gather_ms());
  }
  if (connected_) std::move(std::exchange(connected_, nullptr))();
}

void Worker::Heed(const v1::SynchronizeResponse& response) {
  if (response.refused() != refused_) {
    refused_ = response.refused();
    if (refused_.empty()) {
      spdlog::info("the server gives work again");
    } else {
      spdlog::error("the server gives this worker no work: {}", refused_);
    }
  }
  if (response.drain() != drained_) {
    drained_ = response.drain();
    spdlog::info(drained_ ? "drained: what is begun is finished, and no more is taken"
                          : "resumed: work is taken again");
  }
}

void Worker::Run(absl::AnyInvocable<void() &&> connected) {
  {
    absl::MutexLock lock(&mutex_);
    connected_ = std::move(connected);
  }
  const int preparers = std::max(options_.capabilities.build_slots(), 1);
  for (int i = 0; i < preparers; ++i) threads_.emplace_back([this] { PrepareLoop(); });
  if (options_.capabilities.can_run()) threads_.emplace_back([this] { RunLoop(); });
  threads_.emplace_back([this] { UploadLoop(); });
  threads_.emplace_back([this] { PulseLoop(); });

  mutex_.Lock();
  while (!stopping_) {
    const absl::Time until = NextCall();
    const absl::Time now = SteadyNow();
    if (now >= until) {
      StartCall();
      continue;
    }
    // News or an answer may change the wake-up time; the wait then starts again.
    const auto wake = [this, until]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || SteadyNow() >= until || NextCall() != until;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&wake), until - now);
  }
  mutex_.Unlock();
  ChildProcess::KillAll();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();

  // Last call: reports finished results and asks for no more work.
  mutex_.Lock();
  StartCall();
  const int64_t farewell = last_call_;
  const auto heard = [this, farewell]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !calls_.contains(farewell);
  };
  mutex_.AwaitWithTimeout(absl::Condition(&heard), kFarewell);
  mutex_.Unlock();
  link_->Shutdown();
  mutex_.Lock();
  const auto quiet = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_.empty(); };
  mutex_.Await(absl::Condition(&quiet));
  mutex_.Unlock();
}

void Worker::Finish(const std::shared_ptr<HeldWork>& work, MeasureResult result) {
  result.facts = work->facts;
  if (result.artifact_digest.empty()) result.artifact_digest = work->artifact_digest;
  v1::FinishedLease finished;
  finished.set_lease_id(work->lease.lease_id());
  *finished.mutable_result() = record::ToProto(result);
  // At shutdown the agent may have killed this process itself; the server grants the lease again.
  if (IsStopping()) return;
  // Stored on disk before it is reported, without the mutex, so that calls do not wait for the
  // disk.
  if (absl::Status kept = spool_->Put(finished); !kept.ok()) {
    spdlog::warn("a result is kept in memory only: {}", kept.ToString());
  }
  bool wanted = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!stopping_) wanted = leases_.Finish(work, std::move(finished));
    news_ = true;
  }
  if (!wanted) spool_->Remove(work->lease.lease_id());
}

void Worker::PulseLoop() {
  while (!IsStopping()) absl::SleepFor(kPulse);
}

bool Worker::IsStopping() {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

// --- Building and fetching ---

void Worker::PrepareLoop() {
  BuilderClient builder(options_.builder);
  for (;;) {
    std::shared_ptr<HeldWork> work;
    {
      absl::MutexLock lock(&mutex_);
      // Without side effects: a mutex may evaluate a condition at any time and in any thread.
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || leases_.waiting_to_prepare() > 0;
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      work = leases_.NextToPrepare();
    }
    Prepare(work, builder);
  }
}

void Worker::Prepare(const std::shared_ptr<HeldWork>& work, BuilderClient& builder) {
  const v1::Lease& lease = work->lease;
  if (!lease.build()) {
    const std::string& digest = lease.artifact_digest();
    if (!Digest::FromHex(digest).ok()) {
      return Finish(work, Failure(Outcome::kInvalid, "the lease names no artifact"));
    }
    if (!artifacts_->Pin(digest)) {
      absl::StatusOr<std::string> bytes = link_->Download(digest);
      absl::Status kept = bytes.status();
      if (kept.ok()) kept = artifacts_->Put(digest, *bytes);
      if (!kept.ok() || !artifacts_->Pin(digest)) {
        return Finish(work, Failure(Outcome::kDeviceLost,
                                    absl::StrCat("artifact ", digest, ": ", kept.message())));
      }
    }
  } else {
    record::BuildResponse built =
        builder.Build({.workload = lease.workload(),
                       .space = lease.space(),
                       .decisions = {lease.decisions().begin(), lease.decisions().end()},
                       .target = lease.target(),
                       .artifact_dir = artifacts_->path()});
    work->facts = built.facts;
    if (built.outcome != Outcome::kOk) return Finish(work, Failure(built.outcome, built.detail));
    work->artifact_digest = built.artifact_digest;
    artifacts_->Add(built.artifact_digest);
    if (!artifacts_->Pin(built.artifact_digest)) {
      return Finish(
          work, Failure(Outcome::kDeviceLost, "the builder's artifact is not where it should be"));
    }
    if (!lease.run()) {
      // Another worker runs it, so the server must have the reference before it learns of the
      // candidate.
      OfferReference(lease);
      const absl::StatusOr<std::string> bytes = ReadFile(artifacts_->PathOf(built.artifact_digest));
      absl::Status sent = bytes.status();
      if (sent.ok()) sent = Upload(built.artifact_digest, *bytes);
      artifacts_->Unpin(built.artifact_digest);
      return Finish(work, sent.ok() ? MeasureResult{}
                                    : Failure(Outcome::kDeviceLost,
                                              absl::StrCat("upload: ", sent.message())));
    }
  }
  absl::MutexLock lock(&mutex_);
  leases_.Prepared(work, SteadyNow());
  if (work->cancelled) artifacts_->Unpin(work->artifact_digest);
}

// --- Running ---

bool Worker::BatchIsReady() const {
  const int waiting = leases_.waiting_to_run();
  if (waiting == 0) return false;
  return waiting >= options_.batch || leases_.preparing() == 0 ||
         SteadyNow() >= leases_.oldest_ready() + options_.batch_wait;
}

bool Worker::NextReference(std::string& digest, std::string& text) {
  for (const auto& [known_digest, use] : leases_.workloads()) {
    if (std::find(referenced_.begin(), referenced_.end(), known_digest) != referenced_.end()) {
      continue;
    }
    const auto error = reference_errors_.find(known_digest);
    if (error != reference_errors_.end() && SteadyNow() < error->second.retry) continue;
    digest = known_digest;
    text = use.text;
    return true;
  }
  return false;
}

void Worker::RunLoop() {
  RunnerClient runner(options_.runner);
  for (;;) {
    std::vector<std::shared_ptr<HeldWork>> batch;
    std::string digest, text;
    {
      absl::MutexLock lock(&mutex_);
      while (!stopping_ && !NextReference(digest, text) && !BatchIsReady()) {
        // A lease that becomes ready sets the time by which a batch must begin.
        const absl::Time due = leases_.oldest_ready() + options_.batch_wait;
        const auto news = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          std::string unused_digest, unused_text;
          return stopping_ || NextReference(unused_digest, unused_text) || BatchIsReady() ||
                 leases_.oldest_ready() + options_.batch_wait != due;
        };
        mutex_.AwaitWithTimeout(absl::Condition(&news), due - SteadyNow());
      }
      if (stopping_) return;
      if (digest.empty()) batch = leases_.NextToRun(2 * options_.batch);
    }
    if (digest.empty()) {
      RunBatch(batch, runner);
      continue;
    }
    const absl::Status made = MakeReference(digest, text, runner);
    absl::MutexLock lock(&mutex_);
    if (made.ok()) {
      referenced_.push_back(digest);
      if (referenced_.size() > kPinnedReferences) {
        references_->Unpin(referenced_.front());
        referenced_.pop_front();
      }
      reference_errors_.erase(digest);
    } else {
      spdlog::error("the reference of workload {} cannot be made: {}", digest,
                    std::string(made.message()));
      reference_errors_[digest] = {made, SteadyNow() + kReferenceRetry};
    }
  }
}

void Worker::RunBatch(const std::vector<std::shared_ptr<HeldWork>>& batch, RunnerClient& runner) {
  const auto best_key = [](const v1::Lease& lease) {
    return absl::StrCat(lease.workload_digest(), " ", record::FromProto(lease.policy())->Key());
  };
  std::vector<std::shared_ptr<HeldWork>> runnable;
  std::vector<record::RunRequest> requests;
  for (const std::shared_ptr<HeldWork>& work : batch) {
    const v1::Lease& lease = work->lease;
    const absl::StatusOr<record::Policy> policy = record::FromProto(lease.policy());
    absl::Status refused = policy.status();
    {
      absl::MutexLock lock(&mutex_);
      const auto error = reference_errors_.find(lease.workload_digest());
      if (refused.ok() && error != reference_errors_.end()) {
        refused = absl::InternalError(
            absl::StrCat("its reference cannot be made: ", error->second.status.message()));
      }
    }
    if (refused.ok() && SteadyNow() > work->deadline) {
      refused = absl::DeadlineExceededError("its lease ended before its turn came");
    }
    if (!refused.ok()) {
      artifacts_->Unpin(work->artifact_digest);
      Finish(work, Failure(Outcome::kDeviceLost, refused.message()));
      continue;
    }
    record::RunRequest request;
    request.workload = lease.workload();
    request.workload_digest = lease.workload_digest();
    request.artifact_path = artifacts_->PathOf(work->artifact_digest);
    request.reference_data = references_->PathOf(lease.workload_digest());
    request.policy = *policy;
    request.tolerance = lease.tolerance();
    request.best_latency_ns = lease.best_latency_ns();
    request.peak_gflops = options_.capabilities.peak_gflops();
    // Page offsets differ between processes and confirmations of a candidate, and repeat with the
    // lease.
    request.seed = DigestOf(lease.lease_id()).low;
    {
      absl::MutexLock lock(&mutex_);
      const auto best = best_ns_.find(best_key(lease));
      if (best != best_ns_.end() && best->second > 0) {
        request.best_latency_ns = request.best_latency_ns > 0
                                      ? std::min(request.best_latency_ns, best->second)
                                      : best->second;
      }
    }
    request.time_limit_ms = absl::ToInt64Milliseconds(
        request.best_latency_ns > 0 ? options_.run_limit : options_.first_run_limit);
    runnable.push_back(work);
    requests.push_back(std::move(request));
  }
  runner.Run(
      requests,
      [&](size_t i) {
        absl::MutexLock lock(&mutex_);
        leases_.MarkRunning(*runnable[i]);
      },
      [&](size_t i, MeasureResult result) {
        artifacts_->Unpin(runnable[i]->artifact_digest);
        if (result.outcome == Outcome::kOk && !result.stopped_early && result.latency_ns > 0) {
          absl::MutexLock lock(&mutex_);
          double& best = best_ns_[best_key(runnable[i]->lease)];
          const double steady = record::SteadyLatencyNs(result);
          if (best == 0 || steady < best) best = steady;
        }
        Finish(runnable[i], std::move(result));
      });
}

// --- Winners' artifacts ---

absl::Status Worker::Upload(const std::string& name, const std::string& bytes) {
  const absl::Time give_up = SteadyNow() + kUploadPatience;
  for (int refusals = 0;; ++refusals) {
    absl::Status sent = link_->Upload(name, bytes);
    const absl::Time again = SteadyNow() + BackoffAfter(refusals);
    if (!absl::IsResourceExhausted(sent) || again > give_up) return sent;
    absl::MutexLock lock(&mutex_);
    const auto due = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || SteadyNow() >= again;
    };
    mutex_.Await(absl::Condition(&due));
    if (stopping_) return sent;
  }
}

void Worker::UploadLoop() {
  for (;;) {
    std::string digest;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !uploads_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      digest = uploads_.front();
    }
    absl::Status sent = absl::NotFoundError("it is not kept here any more");
    if (Digest::FromHex(digest).ok() && artifacts_->Pin(digest)) {
      const absl::StatusOr<std::string> bytes = ReadFile(artifacts_->PathOf(digest));
      sent = bytes.ok() ? Upload(digest, *bytes) : bytes.status();
      artifacts_->Unpin(digest);
    }
    if (!sent.ok()) {  // the server asks again if it still wants it
      spdlog::warn("artifact {} was not uploaded: {}", digest, std::string(sent.message()));
    }
    absl::MutexLock lock(&mutex_);
    uploads_.pop_front();
  }
}

}  // namespace hone::agent
