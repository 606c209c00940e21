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

// Reads the JSON lines of an export into a batch and checks all that can be checked without the
// store: every line's form, that texts are what their digests say, that nothing is cut off. Fed in
// pieces that may end anywhere. Not thread-safe.
class RecordImport {
 public:
  // Of the whole import, which is one transaction.
  static constexpr int64_t kMaxBytes = int64_t{1} << 30;
  static constexpr int64_t kMaxLineBytes = int64_t{32} << 20;

  // Says whether a workload's text has the digest. Digests of design spaces are those of their
  // bytes and checked here.
  using CheckWorkload =
      std::function<absl::Status(const std::string& digest, const std::string& text)>;
  explicit RecordImport(CheckWorkload check_workload);

  // InvalidArgument: names the line and what is wrong with it. After an error nothing more is fed.
  absl::Status Feed(absl::string_view bytes);
  // The batch. InvalidArgument: it was cut short, or a text is not what its digest says.
  absl::StatusOr<ImportBatch> Finish() &&;

 private:
  absl::Status ReadLine(absl::string_view line);
  absl::Status ReadHeader(const nlohmann::json& json);
  absl::Status ReadText(const nlohmann::json& json);
  absl::Status ReadEnd(const nlohmann::json& json);
  absl::Status AtLine(int64_t line, const absl::Status& status) const;

  const CheckWorkload check_workload_;
  ImportBatch batch_;
  std::string rest_;  // of a line that goes on
  int64_t bytes_ = 0;
  int64_t line_ = 0;
  int64_t text_lines_ = 0;
  bool header_ = false;
  bool end_ = false;
  std::map<std::string, int64_t> text_at_;  // digest → line
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_EXCHANGE_RECORD_IMPORT_H_
