#include "worker/agent/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::agent {

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(const std::string& folder) {
  HONE_RETURN_IF_ERROR(MakeDirectories(folder));
  return std::unique_ptr<Spool>(new Spool(folder));
}

// Lease ids are the server's: they name no files.
std::string Spool::PathOf(const std::string& lease_id) const {
  return absl::StrCat(folder_, "/", DigestOf(lease_id).ToHex());
}

std::vector<v1::FinishedLease> Spool::Load() {
  std::vector<v1::FinishedLease> finished;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder_, error)) {
    const absl::StatusOr<std::string> bytes = ReadFile(file.path());
    v1::FinishedLease lease;
    if (bytes.ok() && lease.ParseFromString(*bytes) &&
        PathOf(lease.lease_id()) == file.path().string()) {
      finished.push_back(std::move(lease));
    } else {
      std::filesystem::remove(file.path(), error);
    }
  }
  return finished;
}

absl::Status Spool::Put(const v1::FinishedLease& finished) {
  const std::string bytes = finished.SerializeAsString();
  const std::string path = PathOf(finished.lease_id());
  const std::string temporary = absl::StrCat(path, ".new");
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("create ", temporary));
  const bool written = write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  const int error_number = errno;
  close(fd);
  // No fsync: it would cost more than the measurement that a crash of the machine could lose.
  if (!written || rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    return ErrnoStatus(written ? errno : error_number, absl::StrCat("write ", path));
  }
  return absl::OkStatus();
}

void Spool::Remove(const std::string& lease_id) { unlink(PathOf(lease_id).c_str()); }

}  // namespace hone::agent
