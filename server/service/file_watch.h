#ifndef HONE_SERVER_SERVICE_FILE_WATCH_H_
#define HONE_SERVER_SERVICE_FILE_WATCH_H_

#include <sys/types.h>
#include <time.h>

#include <string>
#include <utility>
#include <vector>

namespace hone::service {

// Says whether files were changed or replaced, by looking at them. Not thread-safe.
class FileWatch {
 public:
  // As they are now.
  explicit FileWatch(std::vector<std::string> paths);

  // Whether one of them is another, or has another content or other rights, than at the call
  // before. Of a file that is gone: no, until it is there again.
  bool Changed();

 private:
  struct Stamp {
    dev_t device = 0;
    ino_t file = 0;
    off_t bytes = 0;
    timespec changed{};  // its content or its rights
  };
  // Whether the file is there and is not as the stamp says, which is brought up to date.
  static bool Look(const std::string& path, Stamp& stamp);

  std::vector<std::pair<std::string, Stamp>> files_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_FILE_WATCH_H_
