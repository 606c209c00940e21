#ifndef HONE_COMMON_RPC_ERROR_DETAILS_H_
#define HONE_COMMON_RPC_ERROR_DETAILS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hone::rpc {

// What an error says to programs, beside its message (AIP-193). It is a payload of the absl::Status
// and travels as google.rpc.Status in the call's trailer.

// When to try again: google.rpc.RetryInfo.
absl::Status WithRetryAfter(absl::Status status, absl::Duration wait);
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// Why, in one word like "TOKEN_MISSING", with names and values: google.rpc.ErrorInfo of the domain
// "hone".
absl::Status WithReason(absl::Status status, absl::string_view reason,
                        const std::map<std::string, std::string>& metadata = {});
std::string ReasonOf(const absl::Status& status);  // "" none

// The payloads as the bytes of a google.rpc.Status; "" if there are none.
std::string EncodeDetails(const absl::Status& status);
// Adds the payloads in such bytes. Malformed bytes are ignored.
void DecodeDetails(absl::string_view bytes, absl::Status& status);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_ERROR_DETAILS_H_
