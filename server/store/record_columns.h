#ifndef HONE_SERVER_STORE_RECORD_COLUMNS_H_
#define HONE_SERVER_STORE_RECORD_COLUMNS_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/record/fields.h"
#include "common/record/record.h"
#include "server/store/connection.h"
#include "server/store/store.h"

// The columns of the tables record and environment, used by every database. They are derived from
// the description of a record's fields. Binder has the functions of the same names as Statement.
namespace hone::store {

// The blobs of the record table. Their formats are part of the schema, so a change of a format
// needs a migration.
//
// Decisions: the zigzag form of each value in base 128, low group first, like Protobuf's sint64.
// Most decisions take one byte.
std::string EncodeDecisions(const std::vector<int64_t>& decisions);
// DataLoss: the blob is malformed.
absl::StatusOr<std::vector<int64_t>> DecodeDecisions(absl::string_view bytes);

// Samples: IEEE 754 binary64, little-endian, 8 bytes each.
std::string EncodeSamples(const std::vector<double>& samples);
// DataLoss: the size is not a multiple of 8 bytes.
absl::StatusOr<std::vector<double>> DecodeSamples(absl::string_view bytes);

// Lists of columns for use in statements, in the order of common/record/fields.h.
struct RecordColumns {
  std::string select;       // what ReadRecord reads, from record r and environment e
  std::string insert;       // what BindRecord binds
  std::string environment;  // what BindEnvironment binds
  int insert_count = 0;
  int environment_count = 0;
};
const RecordColumns& Columns();

// Checks the fields that every record must have. InvalidArgument: see Store::Append.
inline absl::Status CheckRecord(const record::Record& record) {
  if (record.workload_digest.empty() || record.target.empty()) {
    return absl::InvalidArgumentError("a record needs a workload digest and a target");
  }
  if (!std::isfinite(record.tolerance) || record.tolerance < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record's tolerance must be a finite number ≥ 0, not ", record.tolerance));
  }
  const double latency_ns = record.result.latency_ns;
  if (record.result.outcome == record::Outcome::kOk &&
      !(latency_ns > 0 && std::isfinite(latency_ns))) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record with outcome ok needs a positive latency, not ", latency_ns, " ns"));
  }
  return absl::OkStatus();
}

// InvalidArgument: the page size is not from 1 to 1000, the outcome is unknown, or no index serves
// the order.
inline absl::Status CheckQuery(const RecordQuery& query) {
  if (query.page_size < 1 || query.page_size > 1000) {
    return absl::InvalidArgumentError(
        absl::StrCat("a page has 1 to 1000 records, not ", query.page_size));
  }
  if (!IsServed(query, query.order)) {
    return absl::InvalidArgumentError("records cannot be sorted in this order with these filters");
  }
  if (query.outcome.empty()) return absl::OkStatus();
  return record::OutcomeFromName(query.outcome).status();
}

// Binds the columns of the record table. The environment is a row of another table.
template <typename Binder>
class FieldBinder {
 public:
  explicit FieldBinder(Binder& binder) : binder_(binder) {}

  void operator()(const record::Field& field, const std::string& text) {
    field.raw ? binder_.BindRaw(text) : binder_.Bind(absl::string_view(text));
  }
  void operator()(const record::Field&, bool value) { binder_.BindBool(value); }
  void operator()(const record::Field&, double value) { binder_.Bind(value); }
  void operator()(const record::Field& field, int64_t value) {
    if (!field.by_store) binder_.Bind(value);
  }
  void operator()(const record::Field& field, int value) { (*this)(field, int64_t{value}); }
  void operator()(const record::Field&, record::Outcome value) {
    binder_.Bind(record::OutcomeName(value));
  }
  void operator()(const record::Field&, const std::vector<int64_t>& decisions) {
    binder_.BindBlob(EncodeDecisions(decisions));
  }
  void operator()(const record::Field&, const std::vector<double>& samples) {
    binder_.BindBlob(EncodeSamples(samples));
  }
  void operator()(const record::Field&, const record::Environment&) {}  // a separate table
  template <typename T>
  void operator()(const record::Field&, const T& nested) {
    VisitFields(nested, *this);
  }

 private:
  Binder& binder_;
};

template <typename Binder>
void BindRecord(Binder& s, const record::Record& record) {
  FieldBinder<Binder> binder(s);
  VisitFields(record, binder);
}

template <typename Binder>
void BindEnvironment(Binder& s, const record::Environment& environment) {
  FieldBinder<Binder> binder(s);
  VisitFields(environment, binder);
}

class FieldReader {
 public:
  explicit FieldReader(Statement& row) : row_(row) {}

  void operator()(const record::Field& field, std::string& text) {
    text = field.raw ? row_.Raw() : row_.Text();
  }
  void operator()(const record::Field&, bool& value) { value = row_.Bool(); }
  void operator()(const record::Field&, double& value) { value = row_.Double(); }
  void operator()(const record::Field&, int64_t& value) { value = row_.Int64(); }
  void operator()(const record::Field&, int& value) { value = static_cast<int>(row_.Int64()); }
  void operator()(const record::Field&, record::Outcome& value) {
    const std::string name = row_.Text();
    const absl::StatusOr<record::Outcome> known = record::OutcomeFromName(name);
    if (known.ok()) {
      value = *known;
    } else {
      status_.Update(absl::DataLossError(absl::StrCat("unknown outcome '", name, "'")));
    }
  }
  void operator()(const record::Field&, std::vector<int64_t>& decisions) {
    Take(DecodeDecisions(row_.Blob()), decisions);
  }
  void operator()(const record::Field&, std::vector<double>& samples) {
    Take(DecodeSamples(row_.Blob()), samples);
  }
  template <typename T>
  void operator()(const record::Field&, T& nested) {
    VisitFields(nested, *this);
  }
  const absl::Status& status() const { return status_; }

 private:
  template <typename T>
  void Take(absl::StatusOr<T> decoded, T& value) {
    status_.Update(decoded.status());
    if (decoded.ok()) value = *std::move(decoded);
  }

  Statement& row_;
  absl::Status status_;
};

// Reads a record from the next columns of the row. DataLoss: an unknown outcome or a malformed
// blob.
inline absl::StatusOr<record::Record> ReadRecord(Statement& row) {
  record::Record record;
  FieldReader reader(row);
  VisitFields(record, reader);
  if (reader.status().ok()) return record;
  return absl::DataLossError(absl::StrCat("record ", record.id, ": ", reader.status().message()));
}

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_RECORD_COLUMNS_H_
