#include <bit>
#include <cstring>

#include "absl/strings/str_replace.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

class ColumnLister {
 public:
  void operator()(const record::Field&, const record::Environment& environment) {
    ColumnLister nested;
    VisitFields(environment, nested);
    columns_.environment = nested.columns_.insert;
    columns_.environment_count = nested.columns_.insert_count;
    absl::StrAppend(&columns_.select, ", ",
                    absl::StrReplaceAll(nested.columns_.select, {{"r.", "e."}}));
  }
  template <typename T>
  void operator()(const record::Field& field, const T& value) {
    if constexpr (requires { VisitFields(value, *this); }) {
      prefix_ = field.column_name();
      VisitFields(value, *this);
      prefix_ = "";
      return;
    }
    const std::string name = absl::StrCat(prefix_, field.column_name());
    const auto add = [](std::string& list, absl::string_view column) {
      absl::StrAppend(&list, list.empty() ? "" : ", ", column);
    };
    add(columns_.select, absl::StrCat("r.", name));
    if (field.by_store) return;
    add(columns_.insert, name);
    ++columns_.insert_count;
  }
  const RecordColumns& columns() const { return columns_; }

 private:
  RecordColumns columns_;
  std::string prefix_;
};

}  // namespace

static_assert(std::endian::native == std::endian::little, "samples are stored as they are");

std::string EncodeDecisions(const std::vector<int64_t>& decisions) {
  std::string bytes;
  bytes.reserve(decisions.size() * 2);
  for (const int64_t value : decisions) {
    uint64_t rest = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
    for (; rest >= 0x80; rest >>= 7) bytes.push_back(static_cast<char>(rest | 0x80));
    bytes.push_back(static_cast<char>(rest));
  }
  return bytes;
}

absl::StatusOr<std::vector<int64_t>> DecodeDecisions(absl::string_view bytes) {
  std::vector<int64_t> decisions;
  uint64_t value = 0;
  int shift = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    // The tenth group may contain only bit 63, and ends the number.
    if (shift > 63 || (shift == 63 && byte > 1)) {
      return absl::DataLossError("a record's decisions hold a number of more than 64 bits");
    }
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
    if (byte & 0x80) continue;
    decisions.push_back(static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1));
    value = 0;
    shift = 0;
  }
  if (shift != 0) return absl::DataLossError("a record's decisions end within a number");
  return decisions;
}

std::string EncodeSamples(const std::vector<double>& samples) {
  return std::string(reinterpret_cast<const char*>(samples.data()),
                     samples.size() * sizeof(double));
}

absl::StatusOr<std::vector<double>> DecodeSamples(absl::string_view bytes) {
  if (bytes.size() % sizeof(double) != 0) {
    return absl::DataLossError("a record's samples are not a multiple of 8 bytes");
  }
  std::vector<double> samples(bytes.size() / sizeof(double));
  if (!bytes.empty()) std::memcpy(samples.data(), bytes.data(), bytes.size());
  return samples;
}

const RecordColumns& Columns() {
  static const auto* const columns = [] {
    const record::Record record;
    ColumnLister lister;
    VisitFields(record, lister);
    return new RecordColumns(lister.columns());
  }();
  return *columns;
}

}  // namespace hone::store
