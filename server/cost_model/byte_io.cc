#include "server/cost_model/byte_io.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::cost_model {
namespace {

void AppendLittleEndian(uint64_t value, int size, std::string& bytes) {
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t FromLittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

}  // namespace

void ByteWriter::AddU32(uint32_t value) { AppendLittleEndian(value, 4, bytes_); }
void ByteWriter::AddU64(uint64_t value) { AppendLittleEndian(value, 8, bytes_); }
void ByteWriter::AddFloat(float value) { AddU32(std::bit_cast<uint32_t>(value)); }
void ByteWriter::AddDouble(double value) { AddU64(std::bit_cast<uint64_t>(value)); }
void ByteWriter::AddString(absl::string_view value) {
  AddU64(value.size());
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

absl::StatusOr<uint32_t> ByteReader::U32() {
  HONE_ASSIGN_OR_RETURN(const absl::string_view bytes, Take(4));
  return static_cast<uint32_t>(FromLittleEndian(bytes));
}

absl::StatusOr<uint64_t> ByteReader::U64() {
  HONE_ASSIGN_OR_RETURN(const absl::string_view bytes, Take(8));
  return FromLittleEndian(bytes);
}

absl::StatusOr<float> ByteReader::Float() {
  HONE_ASSIGN_OR_RETURN(const uint32_t bits, U32());
  return std::bit_cast<float>(bits);
}

absl::StatusOr<double> ByteReader::Double() {
  HONE_ASSIGN_OR_RETURN(const uint64_t bits, U64());
  return std::bit_cast<double>(bits);
}

absl::StatusOr<absl::string_view> ByteReader::String() {
  HONE_ASSIGN_OR_RETURN(const uint64_t size, U64());
  return Take(size);
}

}  // namespace hone::cost_model
