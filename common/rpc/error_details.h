#ifndef HONE_COMMON_RPC_ERROR_DETAILS_H_
#define HONE_COMMON_RPC_ERROR_DETAILS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hone::rpc {

// Machine-readable details of an error (AIP-193). They are payloads of the absl::Status, and are
// sent as google.rpc.Status in the call's trailer.

// Adds and reads the time to wait before a retry (google.rpc.RetryInfo).
absl::Status WithRetryAfter(absl::Status status, absl::Duration wait);
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// Adds the reason, one word like "TOKEN_MISSING", with names and values (google.rpc.ErrorInfo of
// the domain "hone").
absl::Status WithReason(absl::Status status, absl::string_view reason,
                        const std::map<std::string, std::string>& metadata = {});

// Returns the payloads as the bytes of a google.rpc.Status; "" if there are none.
std::string EncodeDetails(const absl::Status& status);
// Adds the payloads of such bytes. Malformed bytes are ignored.
void DecodeDetails(absl::string_view bytes, absl::Status& status);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_ERROR_DETAILS_H_
