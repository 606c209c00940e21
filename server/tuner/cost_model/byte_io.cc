#include "server/tuner/cost_model/byte_io.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::cost_model {

void ByteWriter::AddBits(uint64_t bits, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes_.push_back(static_cast<char>(bits >> (8 * i)));
}

void ByteWriter::AddOne(absl::string_view value) {
  AddBits(value.size(), sizeof(uint64_t));
  bytes_.append(value.data(), value.size());
}

absl::StatusOr<absl::string_view> ByteReader::Take(size_t size) {
  if (size > bytes_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("truncated: ", size, " more bytes expected, ", bytes_.size(), " left"));
  }
  const absl::string_view taken = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return taken;
}

absl::StatusOr<uint64_t> ByteReader::Bits(size_t size) {
  HONE_ASSIGN_OR_RETURN(const absl::string_view bytes, Take(size));
  uint64_t bits = 0;
  for (size_t i = 0; i < size; ++i)
    bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return bits;
}

absl::Status ByteReader::ReadOne(absl::string_view& value) {
  HONE_ASSIGN_OR_RETURN(const uint64_t size, Bits(sizeof(uint64_t)));
  HONE_ASSIGN_OR_RETURN(value, Take(size));
  return absl::OkStatus();
}

absl::Status ByteReader::ReadOne(std::string& value) {
  absl::string_view text;
  HONE_RETURN_IF_ERROR(ReadOne(text));
  value = std::string(text);
  return absl::OkStatus();
}

}  // namespace hone::cost_model
