#ifndef HONE_SERVER_TUNER_COST_MODEL_BYTE_IO_H_
#define HONE_SERVER_TUNER_COST_MODEL_BYTE_IO_H_

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::cost_model {

// Writes little-endian numbers (floating-point numbers as their bit patterns) and length-prefixed
// strings. The bytes are the same on every machine.
class ByteWriter {
 public:
  // Writes values in order: a number in the size of its type (4 or 8 bytes), or a string. Where the
  // type of a value varies, as that of size_t, Add<uint64_t>(value) names it.
  template <typename... Values>
  void Add(const Values&... values) {
    (AddOne(values), ...);
  }
  std::string Finish() && { return std::move(bytes_); }

 private:
  void AddBits(uint64_t bits, size_t size);
  void AddOne(absl::string_view value);
  template <typename T>
    requires std::is_arithmetic_v<T>
  void AddOne(T value) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    AddBits(std::bit_cast<Bits>(value), sizeof(T));
  }

  std::string bytes_;
};

// Reads what ByteWriter wrote. Every method returns InvalidArgument if the bytes end too early.
class ByteReader {
 public:
  // `bytes` must outlive the reader.
  explicit ByteReader(absl::string_view bytes) : bytes_(bytes) {}

  // Reads values in order, as ByteWriter::Add writes them.
  template <typename... Values>
  absl::Status Read(Values&... values) {
    absl::Status status;
    static_cast<void>(((status = ReadOne(values)).ok() && ...));
    return status;
  }
  template <typename T>
  absl::StatusOr<T> Read() {
    T value{};
    if (absl::Status status = ReadOne(value); !status.ok()) return status;
    return value;
  }
  size_t remaining() const { return bytes_.size(); }

 private:
  absl::StatusOr<absl::string_view> Take(size_t size);
  absl::StatusOr<uint64_t> Bits(size_t size);
  absl::Status ReadOne(absl::string_view& value);
  absl::Status ReadOne(std::string& value);
  template <typename T>
    requires std::is_arithmetic_v<T>
  absl::Status ReadOne(T& value) {
    using Pattern = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    const absl::StatusOr<uint64_t> bits = Bits(sizeof(T));
    if (bits.ok()) value = std::bit_cast<T>(static_cast<Pattern>(*bits));
    return bits.status();
  }

  absl::string_view bytes_;
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_BYTE_IO_H_
