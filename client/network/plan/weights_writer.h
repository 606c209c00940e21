#ifndef HONE_CLIENT_NETWORK_PLAN_WEIGHTS_WRITER_H_
#define HONE_CLIENT_NETWORK_PLAN_WEIGHTS_WRITER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/digest.h"

namespace hone::network {

// Writes a weights file (runtime/plan_format.h) piece by piece. Errors of all functions:
// ResourceExhausted: the disk is full. Others as for ErrnoStatus.
class WeightsWriter {
 public:
  // Creates a file of this size, with its header. What is not written is zero.
  static absl::StatusOr<WeightsWriter> Create(const std::string& path, int64_t bytes);
  WeightsWriter(WeightsWriter&& other)
      : path_(std::move(other.path_)),
        bytes_(other.bytes_),
        file_(std::exchange(other.file_, -1)) {}
  WeightsWriter& operator=(WeightsWriter&&) = delete;
  ~WeightsWriter();

  absl::Status Write(int64_t offset, absl::string_view bytes);
  // Writes the header. Returns the id of the content. The file is on the disk then.
  absl::StatusOr<Digest> Finish();

 private:
  WeightsWriter(std::string path, int64_t bytes, int file)
      : path_(std::move(path)), bytes_(bytes), file_(file) {}
  // The id of the file, which is complete except for its header.
  absl::StatusOr<Digest> ContentDigest() const;

  std::string path_;
  int64_t bytes_;
  int file_;
};

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_WEIGHTS_WRITER_H_
