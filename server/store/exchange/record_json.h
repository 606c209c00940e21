#ifndef HONE_SERVER_STORE_EXCHANGE_RECORD_JSON_H_
#define HONE_SERVER_STORE_EXCHANGE_RECORD_JSON_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "nlohmann/json_fwd.hpp"

// The lines of an export (README.md gives the form).
namespace hone::store {

inline constexpr int kExportVersion = 1;

// Without the id, which is the store's own. Text that is not UTF-8 loses what is not.
std::string RecordLine(const record::Record& record);
// InvalidArgument: a field is missing, of another type, unknown or out of its range; names it.
absl::StatusOr<record::Record> RecordFromJson(const nlohmann::json& line);

std::string HeaderLine(const std::string& store);
std::string TextLine(const std::string& digest, const std::string& text);
// Says that nothing was cut off, and what was left out because its texts are missing.
std::string EndLine(int64_t texts, int64_t records, int64_t left_out);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_EXCHANGE_RECORD_JSON_H_
