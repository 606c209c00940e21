#include "worker/agent/disk_share.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace hone::agent {
namespace {

constexpr int64_t kLeast = int64_t{1} << 20;

}  // namespace

int64_t AvailableBytes(const std::string& folder) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error);
  while (!std::filesystem::exists(path, error) && path.has_relative_path()) {
    path = path.parent_path();
  }
  struct statvfs disk;
  if (statvfs(path.c_str(), &disk) != 0) return 0;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

int64_t CacheBytes(int64_t wanted, int64_t available, int64_t own) {
  return std::clamp((available + own) / 2, kLeast, std::max(wanted, kLeast));
}

int64_t BytesIn(const std::string& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::error_code unknown;
    const uintmax_t size = entry.file_size(unknown);
    if (!unknown) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

}  // namespace hone::agent
