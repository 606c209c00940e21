#include "server/service/file_watch.h"

#include <sys/stat.h>

#include <utility>

namespace hone::service {

FileWatch::FileWatch(std::vector<std::string> paths) {
  for (std::string& path : paths) {
    files_.emplace_back(std::move(path), Stamp());
    Look(files_.back().first, files_.back().second);
  }
}

bool FileWatch::Look(const std::string& path, Stamp& stamp) {
  struct stat now;
  if (stat(path.c_str(), &now) != 0) return false;
  const bool same = now.st_dev == stamp.device && now.st_ino == stamp.file &&
                    now.st_size == stamp.bytes && now.st_ctim.tv_sec == stamp.changed.tv_sec &&
                    now.st_ctim.tv_nsec == stamp.changed.tv_nsec;
  stamp = {now.st_dev, now.st_ino, now.st_size, now.st_ctim};
  return !same;
}

bool FileWatch::Changed() {
  bool changed = false;
  for (auto& [path, stamp] : files_) changed = Look(path, stamp) || changed;
  return changed;
}

}  // namespace hone::service
