#include "worker/agent/spool.h"

#include <unistd.h>

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

// Lease ids come from the server and may contain any characters, so files are named by the digests
// of the ids.
std::string Spool::PathOf(const std::string& lease_id) const {
  return absl::StrCat(folder_, "/", DigestOf(lease_id).ToHex());
}

std::vector<v1::FinishedLease> Spool::Load() {
  std::vector<v1::FinishedLease> finished;
  std::error_code error;
  std::filesystem::directory_iterator file(folder_, error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
    const std::filesystem::path& path = file->path();
    const absl::StatusOr<std::string> bytes = ReadFile(path);
    v1::FinishedLease lease;
    if (bytes.ok() && lease.ParseFromString(*bytes) && PathOf(lease.lease_id()) == path.string()) {
      finished.push_back(std::move(lease));
    } else {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
  }
  return finished;
}

absl::Status Spool::Put(const v1::FinishedLease& finished) {
  // An fsync for every result would take more time than it saves: after a power loss, only the last
  // measurements must be repeated.
  return WriteFileAtomically(PathOf(finished.lease_id()), finished.SerializeAsString(),
                             Durability::kProcess);
}

void Spool::Remove(const std::string& lease_id) { unlink(PathOf(lease_id).c_str()); }

}  // namespace hone::agent
