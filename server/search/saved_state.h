#ifndef HONE_SERVER_SEARCH_SAVED_STATE_H_
#define HONE_SERVER_SEARCH_SAVED_STATE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::search {

// Which strategy wrote a state, and in which form.
struct StateHeader {
  absl::string_view name;
  uint32_t version;
};

// The form of SearchStrategy::Save: "hone.search", name, version, payload, digest of the payload.
std::string EncodeState(const StateHeader& header, absl::string_view payload);
// The payload, inside `state`. InvalidArgument: not a state, of another strategy or version,
// truncated or damaged.
absl::StatusOr<absl::string_view> DecodeState(const StateHeader& header, absl::string_view state);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_SAVED_STATE_H_
