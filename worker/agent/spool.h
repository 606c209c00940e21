#ifndef HONE_WORKER_AGENT_SPOOL_H_
#define HONE_WORKER_AGENT_SPOOL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hone/v1/worker.pb.h"

namespace hone::agent {

// Finished results on disk until the server has them, a file each, so that those of a killed worker
// are handed in by the next one. A crash of the machine may lose the last ones: the server then has
// their candidates measured again. Thread-safe: it
// has no state but its folder.
class Spool {
 public:
  // Errors: the folder cannot be made.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(const std::string& folder);

  // What is there, in no order. Files that cannot be read are removed.
  std::vector<v1::FinishedLease> Load();
  // Errors: the file cannot be written; the result then lives in memory alone.
  absl::Status Put(const v1::FinishedLease& finished);
  void Remove(const std::string& lease_id);

 private:
  explicit Spool(std::string folder) : folder_(std::move(folder)) {}
  std::string PathOf(const std::string& lease_id) const;
  const std::string folder_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_SPOOL_H_
