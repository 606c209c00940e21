#ifndef HONE_SERVER_STORE_EXCHANGE_RECORD_JSON_H_
#define HONE_SERVER_STORE_EXCHANGE_RECORD_JSON_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "nlohmann/json_fwd.hpp"

// The lines of an export (README.md describes the format).
namespace hone::store {

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

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_EXCHANGE_RECORD_JSON_H_
