#ifndef HONE_SERVER_SERVICE_FILE_WATCH_H_
#define HONE_SERVER_SERVICE_FILE_WATCH_H_

#include <sys/types.h>
#include <time.h>

#include <string>
#include <utility>
#include <vector>

namespace hone::service {

// Detects changes of files by polling. Not thread-safe.
class FileWatch {
 public:
  // Records the current state of the files.
  explicit FileWatch(std::vector<std::string> paths);

  // Whether a file was replaced, or its content or permissions have changed, since the last call. A
  // missing file counts as unchanged until it exists again.
  bool Changed();

 private:
  struct Stamp {
    dev_t device = 0;
    ino_t file = 0;
    off_t bytes = 0;
    timespec changed{};  // last change of the content or the permissions
  };
  // Whether the file exists and differs from the stamp. Updates the stamp.
  static bool Look(const std::string& path, Stamp& stamp);

  std::vector<std::pair<std::string, Stamp>> files_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_FILE_WATCH_H_
