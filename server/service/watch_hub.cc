#include "server/service/watch_hub.h"

#include <utility>

#include "common/rpc/status.h"
#include "server/service/job_convert.h"

namespace hone::service {

class WatchHub::Stream final : public grpc::ServerWriteReactor<v1::Job> {
 public:
  Stream(WatchHub* hub, std::string job_id, std::string caller)
      : job_id(std::move(job_id)), caller(std::move(caller)), hub_(hub) {}

  const std::string job_id;
  const std::string caller;

  // Returns whether the job is to be read for Send. It is not read again until Read is called.
  bool WantsRead(absl::Time now) {
    absl::MutexLock lock(&mutex_);
    if (finished_ || writing_ || reading_ || now < next_read_) return false;
    next_read_ = now + kInterval;
    reading_ = true;
    return true;
  }
  void Read() {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
  }
  bool HasFinished() {
    absl::MutexLock lock(&mutex_);
    return finished_;
  }
  void Send(const job::SnapshotOr& snapshot, absl::Time now) {
    absl::MutexLock lock(&mutex_);
    if (finished_ || writing_) return;
    if (!snapshot.ok()) return FinishLocked(snapshot.status());
    const job::JobSnapshot& job = **snapshot;
    const bool last = job::HasEnded(job.state);
    if (!last && (job.version == version_ || now < next_)) return;
    version_ = job.version;
    next_ = now + kInterval;
    last_ = last;
    message_ = ToProto(job);
    SetPeaks(*hub_->fleet_, message_);
    writing_ = true;
    StartWrite(&message_);
  }
  void End(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    FinishLocked(status);
  }
  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) return FinishLocked(absl::CancelledError("the client disconnected"));
    if (last_) FinishLocked(absl::OkStatus());
  }
  void OnCancel() override { End(absl::CancelledError("the client disconnected")); }
  void OnDone() override { hub_->Close(this); }

 private:
  void FinishLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    finished_ = true;
    Finish(rpc::ToGrpc(status));
  }

  WatchHub* const hub_;
  absl::Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool last_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t version_ ABSL_GUARDED_BY(mutex_) = -1;
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time next_read_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // of the store
  v1::Job message_;  // used by gRPC while writing_
};

grpc::ServerWriteReactor<v1::Job>* WatchHub::Open(const std::string& job_id,
                                                  const std::string& caller) {
  auto stream = std::make_shared<Stream>(this, job_id, caller);
  {
    absl::MutexLock lock(&mutex_);
    streams_[stream.get()] = stream;
  }
  Update(stream);
  return stream.get();
}

void WatchHub::Update(const std::shared_ptr<Stream>& stream) {
  const absl::Time now = clock_->Now();
  if (auto job = jobs_->FindUnfinished(stream->job_id)) return stream->Send(std::move(job), now);
  if (!stream->WantsRead(now)) return;
  readers_->Run(
      {.caller = stream->caller, .cancelled = [stream] { return stream->HasFinished(); }},
      [this, stream](const absl::Status& admitted) {
        const job::SnapshotOr state =
            admitted.ok() ? jobs_->Get(stream->job_id) : job::SnapshotOr(admitted);
        stream->Read();
        // While the store is busy, the stream waits for the next read.
        if (absl::IsResourceExhausted(state.status()) || absl::IsDeadlineExceeded(state.status())) {
          return;
        }
        stream->Send(state, clock_->Now());
      });
}

std::vector<std::shared_ptr<WatchHub::Stream>> WatchHub::Streams() const {
  std::vector<std::shared_ptr<Stream>> streams;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, stream] : streams_) streams.push_back(stream);
  return streams;
}

void WatchHub::Tick() {
  for (const std::shared_ptr<Stream>& stream : Streams()) Update(stream);
}

void WatchHub::Drain() {
  for (const std::shared_ptr<Stream>& stream : Streams()) {
    stream->End(absl::UnavailableError("the server is shutting down"));
  }
}

std::set<std::string> WatchHub::Watched() const {
  std::set<std::string> jobs;
  for (const std::shared_ptr<Stream>& stream : Streams()) jobs.insert(stream->job_id);
  return jobs;
}

void WatchHub::Close(Stream* stream) {
  std::shared_ptr<Stream> last;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  auto found = streams_.find(stream);
  last = std::move(found->second);
  streams_.erase(found);
}

}  // namespace hone::service
