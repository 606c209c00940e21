#ifndef HONE_SERVER_TUNER_COST_MODEL_MODEL_FILE_H_
#define HONE_SERVER_TUNER_COST_MODEL_MODEL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::cost_model {

// The description of a saved model, before its payload.
struct ModelHeader {
  std::string name;         // registered name
  uint32_t version = 0;     // of the payload; each model counts its own
  std::string feature_set;  // of the training rows
  uint32_t columns = 0;     // of the training rows; 0: untrained
};

struct ModelFile {
  ModelHeader header;
  std::string payload;
};

// Encodes a model file: the magic "HONEMODL", the version of this layout (u32, 1), name, version,
// feature set, columns, payload, and the 128-bit digest of everything before it (two u64, high
// first). Numbers are little-endian. A string is its size (u64) followed by its bytes.
std::string EncodeModel(const ModelHeader& header, absl::string_view payload);

// InvalidArgument: not a saved model, an unknown layout, truncated, damaged, or of another name,
// version or feature set than `expected`. The columns are not compared.
absl::StatusOr<ModelFile> DecodeModel(absl::string_view bytes, const ModelHeader& expected);

// Returns only the header. InvalidArgument: not a saved model, an unknown layout, truncated or
// damaged.
absl::StatusOr<ModelHeader> ReadModelHeader(absl::string_view bytes);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_MODEL_FILE_H_
