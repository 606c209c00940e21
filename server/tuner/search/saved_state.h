#ifndef HONE_SERVER_TUNER_SEARCH_SAVED_STATE_H_
#define HONE_SERVER_TUNER_SEARCH_SAVED_STATE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::search {

// The strategy that wrote a state, and the version of its format.
struct StateHeader {
  absl::string_view name;
  uint32_t version;
};

// Encodes the format of SearchStrategy::Save: "hone.search", name, version, payload, digest of the
// payload.
std::string EncodeState(const StateHeader& header, absl::string_view payload);
// Returns the payload, which points into `state`. InvalidArgument: the bytes are not a saved state,
// the strategy or version differs, or the state is truncated or damaged.
absl::StatusOr<absl::string_view> DecodeState(const StateHeader& header, absl::string_view state);

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_SAVED_STATE_H_
