#ifndef HONE_SERVER_COST_MODEL_MODEL_FILE_H_
#define HONE_SERVER_COST_MODEL_MODEL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::cost_model {

// What a saved model says about itself, before its payload.
struct ModelHeader {
  std::string name;         // registered name
  uint32_t version = 0;     // of the payload, counted by the model
  std::string feature_set;  // that it was trained on
  uint32_t columns = 0;     // of the rows that it was trained on; 0 when it has seen nothing
};

struct ModelFile {
  ModelHeader header;
  std::string payload;
};

// The bytes: magic "HONEMODL", version of this layout (u32, 1), name, version, feature set,
// columns, payload, and the 128-bit digest of all before it (two u64, high first). Little-endian;
// strings are their size (u64) and their bytes.
std::string EncodeModel(const ModelHeader& header, absl::string_view payload);

// InvalidArgument: no saved model, an unknown layout, truncated, damaged, or of another name,
// version or feature set than `expected` (whose columns are not compared).
absl::StatusOr<ModelFile> DecodeModel(absl::string_view bytes, const ModelHeader& expected);

// What a saved model says about itself. InvalidArgument: no saved model, an unknown layout,
// truncated or damaged.
absl::StatusOr<ModelHeader> ReadModelHeader(absl::string_view bytes);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_MODEL_FILE_H_
