#ifndef HONE_WORKER_AGENT_SPOOL_H_
#define HONE_WORKER_AGENT_SPOOL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hone/v1/worker.pb.h"

namespace hone::agent {

// Finished results on disk, one file each, until the server has them. After a crash of the worker,
// the next process reports them. A crash of the machine may lose the last ones; the server then
// orders their candidates to be measured again. Thread-safe: the only state is the folder.
class Spool {
 public:
  // Errors: the folder cannot be created.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(const std::string& folder);

  // Returns all results, in no order. Removes files that cannot be read.
  std::vector<v1::FinishedLease> Load();
  // Errors: the file cannot be written; the result is then in memory only.
  absl::Status Put(const v1::FinishedLease& finished);
  void Remove(const std::string& lease_id);

 private:
  explicit Spool(std::string folder) : folder_(std::move(folder)) {}
  std::string PathOf(const std::string& lease_id) const;
  const std::string folder_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_SPOOL_H_
