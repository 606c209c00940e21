#include "worker/agent/bounded_dir.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"

namespace hone::agent {
namespace {

constexpr int64_t kLeast = int64_t{1} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<BoundedDir>> BoundedDir::Open(const std::string& path,
                                                             int64_t max_bytes) {
  HONE_RETURN_IF_ERROR(MakeDirectories(path));
  std::error_code error;
  struct Found {
    std::filesystem::file_time_type time;
    std::string name;
  };
  std::vector<Found> found;
  for (const auto& file : std::filesystem::directory_iterator(path, error)) {
    const std::string name = file.path().filename();
    if ((IsSha256(name) || Digest::FromHex(name).ok()) && file.is_regular_file(error)) {
      found.push_back({file.last_write_time(error), name});
    } else {
      std::filesystem::remove(file.path(), error);
    }
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat("read folder ", path));
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.time < b.time; });
  auto dir = std::unique_ptr<BoundedDir>(new BoundedDir(path, max_bytes));
  for (const Found& file : found) dir->Add(file.name);
  return dir;
}

std::string BoundedDir::PathOf(absl::string_view digest) const {
  return absl::StrCat(path_, "/", digest);
}

// Finds or registers a file, and marks it as the most recently used one.
bool BoundedDir::Know(const std::string& digest) {
  if (const auto found = entries_.find(digest); found != entries_.end()) {
    uses_.splice(uses_.begin(), uses_, found->second.use);
    return true;
  }
  std::error_code error;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(PathOf(digest), error));
  if (error) return false;
  uses_.push_front(digest);
  entries_[digest] = {.bytes = bytes, .use = uses_.begin()};
  bytes_ += bytes;
  return true;
}

bool BoundedDir::Pin(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  if (!Know(digest)) return false;
  ++entries_[digest].pins;
  return true;
}

void BoundedDir::Unpin(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(digest);
  if (found != entries_.end() && found->second.pins > 0) --found->second.pins;
  MakeRoom();
}

bool BoundedDir::Has(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  return Know(digest);
}

void BoundedDir::Add(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  if (Know(digest)) MakeRoom();
}

absl::Status BoundedDir::Put(const std::string& digest, absl::string_view bytes) {
  HONE_RETURN_IF_ERROR(WriteFileAtomically(PathOf(digest), bytes, Durability::kProcess));
  absl::MutexLock lock(&mutex_);
  if (!Know(digest)) return absl::OkStatus();
  // It may have replaced a damaged file.
  Entry& entry = entries_[digest];
  bytes_ += static_cast<int64_t>(bytes.size()) - entry.bytes;
  entry.bytes = static_cast<int64_t>(bytes.size());
  MakeRoom();
  return absl::OkStatus();
}

void BoundedDir::MakeRoom() {
  auto next = uses_.end();
  while (bytes_ > max_bytes_ && next != uses_.begin()) {
    --next;
    const auto entry = entries_.find(*next);
    // The newest file stays even if it alone exceeds the limit, because it has just been made.
    if (entry->second.pins > 0 || next == uses_.begin()) continue;
    unlink(PathOf(*next).c_str());
    bytes_ -= entry->second.bytes;
    entries_.erase(entry);
    next = uses_.erase(next);
  }
}

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
