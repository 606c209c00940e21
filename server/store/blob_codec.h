#ifndef HONE_SERVER_STORE_BLOB_CODEC_H_
#define HONE_SERVER_STORE_BLOB_CODEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The blobs of the record table. Their forms are part of the schema: a change of one is a
// migration.
namespace hone::store {

// Decisions: each value zigzagged, then base 128 with the low group first (as Protobuf's sint64).
// Most take one byte.
std::string EncodeDecisions(const std::vector<int64_t>& decisions);
// DataLoss: not such a blob.
absl::StatusOr<std::vector<int64_t>> DecodeDecisions(absl::string_view bytes);

// Samples: IEEE 754 binary64, little-endian, 8 bytes each.
std::string EncodeSamples(const std::vector<double>& samples);
// DataLoss: not a multiple of 8 bytes.
absl::StatusOr<std::vector<double>> DecodeSamples(absl::string_view bytes);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_BLOB_CODEC_H_
