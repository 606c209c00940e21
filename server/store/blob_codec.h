#ifndef HONE_SERVER_STORE_BLOB_CODEC_H_
#define HONE_SERVER_STORE_BLOB_CODEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The blobs of the record table. Their formats are part of the schema, so a change of a format
// needs a migration.
namespace hone::store {

// Decisions: the zigzag form of each value in base 128, low group first, like Protobuf's sint64.
// Most decisions take one byte.
std::string EncodeDecisions(const std::vector<int64_t>& decisions);
// DataLoss: the blob is malformed.
absl::StatusOr<std::vector<int64_t>> DecodeDecisions(absl::string_view bytes);

// Samples: IEEE 754 binary64, little-endian, 8 bytes each.
std::string EncodeSamples(const std::vector<double>& samples);
// DataLoss: the size is not a multiple of 8 bytes.
absl::StatusOr<std::vector<double>> DecodeSamples(absl::string_view bytes);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_BLOB_CODEC_H_
