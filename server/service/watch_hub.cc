#include "server/service/watch_hub.h"

#include <utility>

#include "common/rpc/status.h"
#include "server/service/job_convert.h"

namespace hone::service {

class WatchHub::Stream final : public grpc::ServerWriteReactor<v1::Job> {
 public:
  Stream(WatchHub* hub, std::string job_id) : job_id(std::move(job_id)), hub_(hub) {}

  const std::string job_id;

  // Returns whether the job is to be read for Send. `held`: it is in memory.
  bool WantsJob(bool held, absl::Time now) {
    absl::MutexLock lock(&mutex_);
    if (finished_ || writing_) return false;
    if (held) return true;
    if (now < next_read_) return false;
    next_read_ = now + kInterval;
    return true;
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
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool last_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t version_ ABSL_GUARDED_BY(mutex_) = -1;
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time next_read_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // of the store
  v1::Job message_;  // used by gRPC while writing_
};

grpc::ServerWriteReactor<v1::Job>* WatchHub::Open(const std::string& job_id) {
  auto stream = std::make_shared<Stream>(this, job_id);
  {
    absl::MutexLock lock(&mutex_);
    streams_[stream.get()] = stream;
  }
  stream->Send(jobs_->Get(job_id), clock_->Now());
  return stream.get();
}

std::vector<std::shared_ptr<WatchHub::Stream>> WatchHub::Streams() const {
  std::vector<std::shared_ptr<Stream>> streams;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, stream] : streams_) streams.push_back(stream);
  return streams;
}

void WatchHub::Tick() {
  const absl::Time now = clock_->Now();
  for (const std::shared_ptr<Stream>& stream : Streams()) {
    if (!stream->WantsJob(jobs_->Holds(stream->job_id), now)) continue;
    stream->Send(jobs_->Get(stream->job_id), now);
  }
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
