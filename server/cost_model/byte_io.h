#ifndef HONE_SERVER_COST_MODEL_BYTE_IO_H_
#define HONE_SERVER_COST_MODEL_BYTE_IO_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::cost_model {

// Writes little-endian numbers and length-prefixed strings, the same bytes on every machine.
class ByteWriter {
 public:
  void AddU32(uint32_t value);
  void AddU64(uint64_t value);
  void AddFloat(float value);    // by its bit pattern
  void AddDouble(double value);  // the same
  void AddString(absl::string_view value);
  std::string Finish() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads them back. Every method: InvalidArgument where the bytes end too early.
class ByteReader {
 public:
  // `bytes` outlives the reader.
  explicit ByteReader(absl::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<uint32_t> U32();
  absl::StatusOr<uint64_t> U64();
  absl::StatusOr<float> Float();
  absl::StatusOr<double> Double();
  absl::StatusOr<absl::string_view> String();
  size_t remaining() const { return bytes_.size(); }

 private:
  absl::StatusOr<absl::string_view> Take(size_t size);

  absl::string_view bytes_;
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_BYTE_IO_H_
