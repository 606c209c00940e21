#ifndef HONE_WORKER_AGENT_OUTPUT_FOLDER_H_
#define HONE_WORKER_AGENT_OUTPUT_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::agent {

// The only folder that a child process may write to. Each process has its own. The process runs
// code of clients, so the agent takes nothing from it but one file with the expected name: neither
// a link nor a file that has another name, too. Removed in the destructor, with everything in it.
// Thread-compatible.
class OutputFolder {
 public:
  // Makes a folder with a random name in `parent`, which is made if it does not exist. Errors are
  // those of MakeDirectories.
  static absl::StatusOr<std::unique_ptr<OutputFolder>> Make(const std::string& parent);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::string& path() const { return path_; }

  // Returns the content of the file, and removes it. The process may still run: what it writes
  // later has no effect on the returned bytes. NotFound: there is no such file. PermissionDenied:
  // it is not a regular file with one name, or the folder has other files. ResourceExhausted: it is
  // larger than `max_bytes`.
  absl::StatusOr<std::string> Take(const std::string& name, int64_t max_bytes);
  // Moves the file to `path`, which is on the same disk. REQUIRES: the process has ended. Errors
  // are those of Take, and of the system.
  absl::Status MoveTo(const std::string& name, const std::string& path);
  // Removes everything in the folder.
  void Clear();

 private:
  explicit OutputFolder(std::string path) : path_(std::move(path)) {}
  // Checks that the folder has this file and no other one.
  absl::Status CheckOnly(const std::string& name) const;

  const std::string path_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_OUTPUT_FOLDER_H_
