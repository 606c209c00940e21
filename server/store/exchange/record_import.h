#ifndef HONE_SERVER_STORE_EXCHANGE_RECORD_IMPORT_H_
#define HONE_SERVER_STORE_EXCHANGE_RECORD_IMPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"
#include "server/store/store.h"

namespace hone::store {

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

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_EXCHANGE_RECORD_IMPORT_H_
