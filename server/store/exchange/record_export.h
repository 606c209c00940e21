#ifndef HONE_SERVER_STORE_EXCHANGE_RECORD_EXPORT_H_
#define HONE_SERVER_STORE_EXCHANGE_RECORD_EXPORT_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/store/store.h"

namespace hone::store {

// Writes records as JSON lines (README.md gives the form), a page at a time, so that its reader
// sets the pace. Used by one thread at a time; the store outlives it.
class RecordExport {
 public:
  // `query` says which; its page token and order are the export's own.
  RecordExport(Store* store, RecordQuery query);

  // The next lines; "" once the last line was given. Errors as of Store::Query.
  absl::StatusOr<std::string> Next();

 private:
  // The text's line goes into `lines` the first time. False: the store does not have it.
  absl::StatusOr<bool> AddText(const std::string& digest, std::string& lines);

  Store* const store_;
  RecordQuery query_;
  absl::flat_hash_map<std::string, bool> texts_;  // whether they are in the store
  int64_t text_lines_ = 0;
  int64_t records_ = 0;
  int64_t left_out_ = 0;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_EXCHANGE_RECORD_EXPORT_H_
