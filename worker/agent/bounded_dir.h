#ifndef HONE_WORKER_AGENT_BOUNDED_DIR_H_
#define HONE_WORKER_AGENT_BOUNDED_DIR_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace hone::agent {

// A folder of bounded size for files named by digests (artifacts, references). Adding a file evicts
// the least recently used files that are not pinned. Other processes may write files too (the
// builder writes artifacts); Add registers them. Thread-safe.
class BoundedDir {
 public:
  // Opens or creates the folder, registers the existing files by age, and removes everything that
  // is not named by a digest (leftovers of a killed process). PermissionDenied, ResourceExhausted,
  // Internal: the folder cannot be created or read.
  static absl::StatusOr<std::unique_ptr<BoundedDir>> Open(const std::string& path,
                                                          int64_t max_bytes);

  const std::string& path() const { return path_; }
  std::string PathOf(absl::string_view digest) const;

  // Returns whether the file exists; if so, marks it as used and pins it. A pinned file is not
  // evicted until Unpin was called as often as Pin.
  bool Pin(const std::string& digest);
  void Unpin(const std::string& digest);
  // Returns whether the file exists; if so, marks it as used.
  bool Has(const std::string& digest);
  // Registers a file that was written to the folder, and evicts others if needed.
  void Add(const std::string& digest);
  // Writes and adds a file. Errors are those of WriteFileAtomically.
  absl::Status Put(const std::string& digest, absl::string_view bytes);

 private:
  struct Entry {
    int64_t bytes = 0;
    int pins = 0;
    std::list<std::string>::iterator use;
  };
  BoundedDir(std::string path, int64_t max_bytes) : path_(std::move(path)), max_bytes_(max_bytes) {}
  bool Know(const std::string& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const int64_t max_bytes_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> uses_ ABSL_GUARDED_BY(mutex_);  // most recent first
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Returns the bytes that this user can still write to the disk of `folder`, or of its nearest
// existing parent; 0 if unknown.
int64_t AvailableBytes(const std::string& folder);

// Returns the size limit of a cache: `wanted` bytes, but at most half of the space that it could
// use, which is the `available` bytes of the disk and the `own` bytes that it holds already. A
// cache thus never fills the small card of a board. At least 1 MB, the least with which anything
// can be measured.
int64_t CacheBytes(int64_t wanted, int64_t available, int64_t own);

// Returns the sum of the sizes of the files in a folder; 0 if it does not exist.
int64_t BytesIn(const std::string& folder);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_BOUNDED_DIR_H_
