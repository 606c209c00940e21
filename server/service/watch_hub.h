#ifndef HONE_SERVER_SERVICE_WATCH_HUB_H_
#define HONE_SERVER_SERVICE_WATCH_HUB_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "grpcpp/support/server_callback.h"
#include "hone/v1/tuning.pb.h"
#include "server/job/job_manager.h"
#include "server/service/reads/reader_threads.h"

namespace hone::service {

// The open WatchJob streams. Each stream gets the current state at once, then changes at most every
// kInterval, and the last state as soon as the job has ended; then the stream ends. The store is
// read at most every kInterval for a stream, on the threads for that, and only if the job is not in
// memory or has ended. Thread-safe.
class WatchHub {
 public:
  static constexpr absl::Duration kInterval = absl::Milliseconds(250);

  WatchHub(const Clock* clock, const job::JobManager* jobs, const fleet::Fleet* fleet,
           ReaderThreads* readers)
      : clock_(clock), jobs_(jobs), fleet_(fleet), readers_(readers) {}

  // Returns the reactor of a new stream, which deletes itself when it is done. `caller`: see
  // ReaderThreads::Read.
  grpc::ServerWriteReactor<v1::Job>* Open(const std::string& job_id, const std::string& caller);
  // Sends the changes that are due. Called a few times a second.
  void Tick();
  // Ends every stream with UNAVAILABLE, so that clients connect to the next server.
  void Drain();
  // Returns the jobs with an open stream.
  std::set<std::string> Watched() const;

 private:
  class Stream;
  std::vector<std::shared_ptr<Stream>> Streams() const;
  // Sends the state of the stream's job if it is due.
  void Update(const std::shared_ptr<Stream>& stream);
  void Close(Stream* stream);

  const Clock* const clock_;
  const job::JobManager* const jobs_;
  const fleet::Fleet* const fleet_;
  ReaderThreads* const readers_;
  mutable absl::Mutex mutex_;
  std::map<Stream*, std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_WATCH_HUB_H_
