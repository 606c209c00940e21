#ifndef HONE_TESTS_COMMON_RPC_REASON_OF_H_
#define HONE_TESTS_COMMON_RPC_REASON_OF_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace hone::rpc {

// Returns the reason that WithReason() has added to a status; "" if it has none. The reason is the
// first field of google.rpc.ErrorInfo: a tag, a length, and that many bytes.
inline std::string ReasonOf(const absl::Status& status) {
  const auto info = status.GetPayload("type.googleapis.com/google.rpc.ErrorInfo");
  if (!info.has_value() || info->size() < 2) return "";
  const std::string bytes(*info);
  return bytes.substr(2, static_cast<unsigned char>(bytes[1]));
}

}  // namespace hone::rpc

#endif  // HONE_TESTS_COMMON_RPC_REASON_OF_H_
