#include "worker/agent/worker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/record/proto_convert.h"
#include "worker/agent/bounded_dir.h"

namespace hone::agent {
namespace {

constexpr absl::Duration kFarewell = absl::Seconds(1);
constexpr absl::Duration kPulse = absl::Milliseconds(100);
constexpr int kBatch =
    8;  // minimum candidates of a workload timed in a row, if more of them come …
constexpr absl::Duration kBatchWait = absl::Milliseconds(250);  // … unless one has waited this long
constexpr int64_t kMaxArtifactBytes = int64_t{512} << 20;       // limits on disk, see CacheBytes
constexpr int64_t kMaxReferenceBytes = int64_t{4} << 30;
constexpr char kFolders[] = "/folders";  // of child processes, see child_folder.h

std::string RandomHex() {
  std::random_device device;
  const uint64_t value = static_cast<uint64_t>(device()) << 32 | device();
  return absl::StrCat(absl::Hex(value, absl::kZeroPad16));
}

// Whether the server does not accept the worker's token or certificate.
bool IsRefusal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

LeaseTable::Capacity CapacityOf(const v1::Capabilities& machine) {
  return {.builds = machine.can_build() ? 4 * machine.build_slots() + 2 * kBatch : 0,
          .runs = machine.can_run() ? 2 * kBatch : 0};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Create(WorkerOptions options, ServerLink* link) {
  // References are larger than artifacts, so they get three quarters of the caches' share.
  const std::string artifact_dir = options.state_dir + "/artifacts";
  const std::string reference_dir = options.state_dir + kReferences;
  const int64_t share =
      CacheBytes(kMaxArtifactBytes + kMaxReferenceBytes, AvailableBytes(options.state_dir),
                 BytesIn(artifact_dir) + BytesIn(reference_dir));
  HONE_ASSIGN_OR_RETURN(auto artifacts,
                        BoundedDir::Open(artifact_dir, std::min(share / 4, kMaxArtifactBytes)));
  HONE_ASSIGN_OR_RETURN(
      auto references,
      BoundedDir::Open(reference_dir, std::min(share / 4 * 3, kMaxReferenceBytes)));
  // A worker that was killed may have left folders here.
  options.builder.output_parent = options.state_dir + kFolders;
  options.runner.input_parent = options.builder.output_parent;
  std::error_code ignored;
  std::filesystem::remove_all(options.builder.output_parent, ignored);
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
      uploader_(link, artifacts_.get()),
      reference_kernels_(options_.capabilities, options_.builder, artifacts_.get(), link,
                         &uploader_),
      leases_(CapacityOf(options_.capabilities)) {}

Worker::~Worker() { Stop(); }

void Worker::Stop() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

bool Worker::IsStopping() {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

absl::Status Worker::Run(absl::AnyInvocable<void() &&> connected) {
  {
    absl::MutexLock lock(&mutex_);
    connected_ = std::move(connected);
  }
  const int preparers = std::max(options_.capabilities.build_slots(), 1);
  for (int i = 0; i < preparers; ++i) threads_.emplace_back([this] { PrepareLoop(); });
  if (options_.capabilities.can_run()) threads_.emplace_back([this] { RunLoop(); });
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

  // Last call: reports finished results and asks for no more work. It comes before the threads end,
  // which may be in the middle of a long transfer until the link is shut down.
  mutex_.Lock();
  const int64_t farewell = StartCall();
  const auto answered = [this, farewell]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !schedule_.IsInProgress(farewell);
  };
  mutex_.AwaitWithTimeout(absl::Condition(&answered), kFarewell);
  mutex_.Unlock();
  link_->Shutdown();
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return schedule_.IsIdle(); };
  mutex_.Lock();
  mutex_.Await(absl::Condition(&idle));
  mutex_.Unlock();
  uploader_.Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  absl::MutexLock lock(&mutex_);
  return denied_;
}

void Worker::PulseLoop() {
  while (!IsStopping()) absl::SleepFor(kPulse);
}

// --- Synchronize ---

int64_t Worker::StartCall() {
  v1::SynchronizeRequest request;
  request.set_worker_id(options_.worker_id);
  request.set_epoch(epoch_);
  *request.mutable_capabilities() = options_.capabilities;
  leases_.Describe(stopping_, request);
  request.set_max_wait_ms(stopping_ ? 0 : absl::ToInt64Milliseconds(schedule_.MayHold()));
  const int64_t call = schedule_.Begin(request.finished_size() > 0, SteadyNow());
  leases_.CallBegins(call, request);
  // The callback may run before Synchronize returns.
  mutex_.Unlock();
  link_->Synchronize(request, [this, call](absl::StatusOr<v1::SynchronizeResponse> response) {
    Answered(call, std::move(response));
  });
  mutex_.Lock();
  return call;
}

void Worker::Answered(int64_t call, absl::StatusOr<v1::SynchronizeResponse> response) {
  if (response.ok()) {
    // The server has these results. They are removed from disk before a call that reports this can
    // be answered.
    for (const std::string& lease_id : response->durable()) spool_->Remove(lease_id);
  }
  absl::MutexLock lock(&mutex_);
  leases_.CallEnds(call, response.ok());
  const absl::Time now = SteadyNow();
  if (!response.ok()) {
    schedule_.Fail(call, IsRefusal(response.status()), now);
    // A worker that the server accepted before may be accepted again, for example when the server
    // has read its tokens again.
    if (absl::IsPermissionDenied(response.status()) && connected_ && !stopping_) {
      denied_ = response.status();
      stopping_ = true;
    } else if (!stopping_) {
      LogFailure(response.status());
    }
    return;
  }
  failures_.NoteAnswer();
  if (schedule_.Answer(call, *response, now)) {
    spdlog::info("the server answers again");
    // The server may be a new one without references, or may now have those that could not be
    // fetched.
    reference_kernels_.ForgetOffers();
    connected_at_ = now;
  }
  LogStandingChange(*response);
  for (const std::string& digest : leases_.Apply(*response, now)) artifacts_->Unpin(digest);
  for (const std::string& digest : response->keep_artifacts()) uploader_.Enqueue(digest);
  if (connected_ && refused_.empty()) std::move(std::exchange(connected_, nullptr))();
}

void Worker::LogFailure(const absl::Status& status) {
  if (!failures_.IsToBeLogged(status, SteadyNow())) return;
  if (!IsRefusal(status)) {
    spdlog::warn("{} (trying again)", std::string(status.message()));
    return;
  }
  spdlog::error(
      "the server refuses this worker: {}. Give the worker a configuration that the server knows "
      "(hone worker-config makes one) and start it again, or restore its token on the server, "
      "which reads its file of tokens again when it changes (trying again, about once a minute)",
      std::string(status.message()));
}

void Worker::LogStandingChange(const v1::SynchronizeResponse& response) {
  if (response.refused() != refused_) {
    refused_ = response.refused();
    if (refused_.empty()) {
      spdlog::info("the server assigns work again");
    } else {
      spdlog::error("the server assigns no work to this worker: {}", refused_);
    }
  }
  // A refused worker gets no work either way.
  if (response.drain() != drained_ && refused_.empty()) {
    drained_ = response.drain();
    spdlog::info(drained_ ? "drained: started work is finished, and no new work is accepted"
                          : "resumed: new work is accepted");
  }
}

// --- Candidates ---

void Worker::PrepareLoop() {
  CandidatePreparer preparer{.builder_options = options_.builder,
                             .builder = BuilderClient(options_.builder),
                             .artifacts = *artifacts_,
                             .references = *references_,
                             .link = *link_,
                             .uploader = uploader_,
                             .reference_kernels = reference_kernels_};
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
    if (auto result = preparer.Prepare(*work); result.has_value()) {
      Finish(work, *std::move(result));
      continue;
    }
    absl::MutexLock lock(&mutex_);
    leases_.Prepared(work, SteadyNow());
    if (work->cancelled) artifacts_->Unpin(work->artifact_digest);
  }
}

bool Worker::BatchIsReady() const {
  const int waiting = leases_.waiting_to_run();
  if (waiting == 0) return false;
  return waiting >= kBatch || !leases_.MoreToRunIsPreparing() ||
         SteadyNow() >= leases_.oldest_ready() + kBatchWait;
}

void Worker::RunLoop() {
  CandidateRunner runner({.runner = options_.runner,
                          .output_parent = options_.builder.output_parent,
                          .run_limit = options_.run_limit,
                          .peak_gflops = options_.capabilities.peak_gflops()},
                         artifacts_.get(), references_.get(), &reference_kernels_);
  for (;;) {
    std::vector<std::shared_ptr<HeldWork>> batch;
    LeaseTable::WorkloadUse unreferenced;
    absl::flat_hash_set<std::string> held;  // keys of references
    {
      absl::MutexLock lock(&mutex_);
      // Returns a workload that will run here and has no reference yet.
      const auto next_reference = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return std::find_if(leases_.workloads().begin(), leases_.workloads().end(),
                            [&](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                              return runner.NeedsReference(entry.first, connected_at_);
                            });
      };
      const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || next_reference() != leases_.workloads().end() || BatchIsReady();
      };
      while (!ready()) {
        // A lease that becomes ready sets the time by which a batch must begin.
        const absl::Time due = leases_.oldest_ready() + kBatchWait;
        const auto news = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return ready() || leases_.oldest_ready() + kBatchWait != due;
        };
        mutex_.AwaitWithTimeout(absl::Condition(&news), due - SteadyNow());
      }
      if (stopping_) return;
      if (const auto next = next_reference(); next != leases_.workloads().end()) {
        unreferenced = next->second;
        for (const auto& [name, use] : leases_.workloads()) held.insert(name);
      } else {
        batch = leases_.NextToRun(2 * kBatch);
      }
    }
    if (unreferenced.leases > 0) {
      runner.MakeReference(unreferenced.digest, unreferenced.text, held,
                           unreferenced.inputs_digest);
      continue;
    }
    runner.Run(
        batch,
        [this](const HeldWork& work) {
          absl::MutexLock lock(&mutex_);
          return !work.cancelled;
        },
        [this](HeldWork& work) {
          absl::MutexLock lock(&mutex_);
          leases_.MarkRunning(work);
        },
        [this](const std::shared_ptr<HeldWork>& work, record::MeasureResult result) {
          Finish(work, std::move(result));
        });
  }
}

void Worker::Finish(const std::shared_ptr<HeldWork>& work, record::MeasureResult result) {
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
    spdlog::warn("a result is kept in memory only: {}", std::string(kept.message()));
  }
  bool wanted = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!stopping_) wanted = leases_.Finish(work, std::move(finished));
    schedule_.AddNews();
  }
  if (!wanted) spool_->Remove(work->lease.lease_id());
}

}  // namespace hone::agent
