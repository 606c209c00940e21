#ifndef HONE_SERVER_STORE_EXCHANGE_EXCHANGE_H_
#define HONE_SERVER_STORE_EXCHANGE_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/record.h"
#include "nlohmann/json_fwd.hpp"
#include "server/store/store.h"

// The exchange of records between stores: as JSON lines (README.md describes the format), or
// directly.
namespace hone::store {

// The lines of an export.

inline constexpr int kExportVersion = 1;

// Returns the line of a record. It does not contain the id, which belongs to the store. Bytes that
// are not UTF-8 are replaced.
std::string RecordLine(const record::Record& record);
// Parses the object under "record" of such a line. InvalidArgument: a field is missing, unknown,
// out of range or of the wrong type; the message names it.
absl::StatusOr<record::Record> RecordFromJson(const nlohmann::json& record);

std::string HeaderLine(const std::string& store);
std::string TextLine(const std::string& digest, const std::string& text);
// The last line. It shows that the export is complete, and counts the records that were left out
// because their texts are missing.
std::string EndLine(int64_t texts, int64_t records, int64_t left_out);

// Writes records as JSON lines, one page for each call of the
// reader. Used by one thread at a time. REQUIRES: the store outlives this object.
class RecordExport {
 public:
  // `query` selects the records; its page token and order are ignored.
  RecordExport(Store* store, RecordQuery query);

  // Returns the next lines; "" after the last line. Errors are those of Store::Query.
  absl::StatusOr<std::string> Next();

 private:
  // Appends the line of a text to `lines` if it was not written before. Returns false if the store
  // does not have the text.
  absl::StatusOr<bool> AddText(const std::string& digest, std::string& lines);

  Store* const store_;
  RecordQuery query_;
  absl::flat_hash_map<std::string, bool> texts_;  // whether each text is in the store
  int64_t text_lines_ = 0;
  int64_t records_ = 0;
  int64_t left_out_ = 0;
  bool begun_ = false;
  bool ended_ = false;
};

// Reads the JSON lines of an export into a batch, and checks everything that can be checked without
// the store: the form of every line, the digests of texts, and that the export is complete. The
// input is passed in pieces, which may end anywhere. Not thread-safe.
class RecordImport {
 public:
  // Limit of the whole import, which is one transaction.
  static constexpr int64_t kMaxBytes = int64_t{1} << 30;
  static constexpr int64_t kMaxLineBytes = int64_t{32} << 20;

  // Checks that a workload's text has the digest. This class checks the digests of design spaces,
  // which are computed from the bytes.
  using CheckWorkload =
      std::function<absl::Status(const std::string& digest, const std::string& text)>;
  explicit RecordImport(CheckWorkload check_workload);

  // InvalidArgument: a line is malformed; the message says which line and why. Must not be called
  // again after an error.
  absl::Status Feed(absl::string_view bytes);
  // Returns the batch. InvalidArgument: the export is incomplete, or a text does not have its
  // digest.
  absl::StatusOr<ImportBatch> Finish() &&;

 private:
  absl::Status ReadLine(absl::string_view line);
  absl::Status ReadHeader(const nlohmann::json& json);
  absl::Status ReadText(const nlohmann::json& json);
  absl::Status ReadEnd(const nlohmann::json& json);
  absl::Status AtLine(int64_t line, const absl::Status& status) const;

  const CheckWorkload check_workload_;
  ImportBatch batch_;
  std::string rest_;  // the beginning of an incomplete line
  int64_t bytes_ = 0;
  int64_t line_ = 0;
  int64_t text_lines_ = 0;
  bool header_ = false;
  bool end_ = false;
  std::map<std::string, int64_t> text_at_;  // digest → line
};

// Copies the rows that `into` does not have yet from `from`: records with their texts, and
// published bests with their artifacts if they are faster. The stores may be of different kinds, so
// this also moves a store from one kind to another. Each page is one transaction; an interrupted
// merge can be run again. Jobs and models are not copied, because they can be made again. Errors
// are those of Store::Import and Store::Query.
absl::StatusOr<ImportReport> MergeStores(Store& into, Store& from);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_EXCHANGE_EXCHANGE_H_
