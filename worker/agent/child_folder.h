#ifndef HONE_WORKER_AGENT_CHILD_FOLDER_H_
#define HONE_WORKER_AGENT_CHILD_FOLDER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

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
  // Whether the folder has more entries than that. The size of a file is limited, their number is
  // not, so the disk is full soon after a process begins to write many.
  static bool HasMoreThan(int entries, const std::string& path);

 private:
  explicit OutputFolder(std::string path) : path_(std::move(path)) {}
  // Checks that the folder has this file and no other one.
  absl::Status CheckOnly(const std::string& name) const;

  const std::string path_;
};

// A folder of a child process that has names for the files that it may read now, and no others.
// Removed in the destructor. Thread-compatible.
class InputFolder {
 public:
  // Errors are those of OutputFolder::Make.
  static absl::StatusOr<std::unique_ptr<InputFolder>> Make(const std::string& parent);

  const std::string& path() const { return folder_->path(); }
  // Gives the folder these files, with the last part of their paths as names, and no others. They
  // are links, or copies where a disk has no links. REQUIRES: no two files have the same name.
  // NotFound: a file is missing. ResourceExhausted: the disk is full.
  absl::Status Hold(const std::vector<std::string>& files);
  // The path of one of the files in the folder; "" if `file` is empty.
  std::string PathOf(const std::string& file) const;

 private:
  explicit InputFolder(std::unique_ptr<OutputFolder> folder) : folder_(std::move(folder)) {}

  const std::unique_ptr<OutputFolder> folder_;
  std::set<std::string> held_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_CHILD_FOLDER_H_
