#include "server/store/postgres/statement.h"

#include <endian.h>
#include <libpq-fe.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hone::store {
namespace {

// Object ids in pg_type, which never change.
constexpr unsigned kBool = 16;
constexpr unsigned kBytea = 17;
constexpr unsigned kInt8 = 20;
constexpr unsigned kText = 25;
constexpr unsigned kFloat8 = 701;

std::string BigEndian(uint64_t bits) {
  bits = htobe64(bits);
  return std::string(reinterpret_cast<const char*>(&bits), sizeof(bits));
}

template <typename Bits>
Bits FromBigEndian(const char* bytes) {
  Bits bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return sizeof(bits) == 4 ? be32toh(bits) : be64toh(bits);
}

}  // namespace

PostgresParams& PostgresParams::Add(unsigned type, std::string bytes) {
  types_.push_back(type);
  bytes_.push_back(std::move(bytes));
  return *this;
}

PostgresParams& PostgresParams::Bind(int64_t value) {
  return Add(kInt8, BigEndian(static_cast<uint64_t>(value)));
}

PostgresParams& PostgresParams::Bind(double value) {
  return Add(kFloat8, BigEndian(std::bit_cast<uint64_t>(value)));
}

PostgresParams& PostgresParams::Bind(absl::string_view text) {
  if (text.find('\0') != absl::string_view::npos && status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        "a text of ", text.size(), " bytes holds a NUL byte, which PostgreSQL cannot keep: '",
        text.substr(0, text.find('\0')).substr(0, 60), "…'"));
  }
  return Add(kText, std::string(text));
}

PostgresParams& PostgresParams::BindBlob(absl::string_view bytes) {
  return Add(kBytea, std::string(bytes));
}

PostgresParams& PostgresParams::BindBool(bool value) {
  return Add(kBool, std::string(1, value ? '\1' : '\0'));
}

std::vector<const char*> PostgresParams::values() const {
  std::vector<const char*> values;
  for (const std::string& bytes : bytes_) values.push_back(bytes.data());
  return values;
}

std::vector<int> PostgresParams::lengths() const {
  std::vector<int> lengths;
  for (const std::string& bytes : bytes_) lengths.push_back(static_cast<int>(bytes.size()));
  return lengths;
}

void PostgresRows::Free::operator()(pg_result* result) const { PQclear(result); }

PostgresRows::PostgresRows(pg_result* result) : result_(result) {}

bool PostgresRows::Next() {
  column_ = 0;
  return ++row_ < PQntuples(result_.get());
}

int64_t PostgresRows::changed() const { return std::atoll(PQcmdTuples(result_.get())); }

int64_t PostgresRows::Int64() {
  const int column = column_++;
  const char* const bytes = PQgetvalue(result_.get(), row_, column);
  // Some functions return integers of 4 bytes.
  if (PQgetlength(result_.get(), row_, column) == 4) {
    return static_cast<int32_t>(FromBigEndian<uint32_t>(bytes));
  }
  return static_cast<int64_t>(FromBigEndian<uint64_t>(bytes));
}

double PostgresRows::Double() {
  return std::bit_cast<double>(FromBigEndian<uint64_t>(PQgetvalue(result_.get(), row_, column_++)));
}

bool PostgresRows::Bool() { return *PQgetvalue(result_.get(), row_, column_++) != 0; }

std::string PostgresRows::Text() {
  const int column = column_++;
  return std::string(PQgetvalue(result_.get(), row_, column),
                     PQgetlength(result_.get(), row_, column));
}

}  // namespace hone::store
