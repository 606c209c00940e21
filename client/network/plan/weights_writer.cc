#include "client/network/plan/weights_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/network/runtime/plan_format.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::network {

absl::StatusOr<WeightsWriter> WeightsWriter::Create(const std::string& path, int64_t bytes) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  WeightsWriter writer(path, bytes, file);
  if (ftruncate(file, bytes) != 0) return ErrnoStatus(errno, absl::StrCat("write ", path));
  return writer;
}

WeightsWriter::~WeightsWriter() {
  if (file_ >= 0) close(file_);
}

absl::Status WeightsWriter::Write(int64_t offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, absl::StrCat("write ", path_));
    bytes.remove_prefix(written);
    offset += written;
  }
  return absl::OkStatus();
}

absl::StatusOr<Digest> WeightsWriter::ContentDigest() const {
  void* const mapped = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map ", path_));
  const absl::string_view content(static_cast<const char*>(mapped), bytes_);
  const Digest digest = DigestOf(content.substr(sizeof(HoneWeightsHeader)));
  munmap(mapped, bytes_);
  return digest;
}

absl::StatusOr<Digest> WeightsWriter::Finish() {
  HONE_ASSIGN_OR_RETURN(const Digest id, ContentDigest());
  HoneWeightsHeader header = {};
  std::memcpy(header.magic, HONE_WEIGHTS_MAGIC, sizeof header.magic);
  header.version = HONE_WEIGHTS_VERSION;
  header.bytes = bytes_;
  std::memcpy(header.id, &id, sizeof header.id);
  HONE_RETURN_IF_ERROR(Write(0, {reinterpret_cast<const char*>(&header), sizeof header}));
  if (fsync(file_) != 0) return ErrnoStatus(errno, absl::StrCat("write ", path_));
  return id;
}

}  // namespace hone::network
