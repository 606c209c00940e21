#ifndef HONE_SERVER_STORE_EXCHANGE_RECORD_EXPORT_H_
#define HONE_SERVER_STORE_EXCHANGE_RECORD_EXPORT_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/store/store.h"

namespace hone::store {

// Writes records as JSON lines (README.md describes the format), one page for each call of the
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

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_EXCHANGE_RECORD_EXPORT_H_
