#ifndef HONE_SERVER_SERVICE_MESSAGE_LIMITS_H_
#define HONE_SERVER_SERVICE_MESSAGE_LIMITS_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace hone::service {

// Limits of all texts and lists of requests. Texts that are not names have their own limits, in the
// table in message_limits.cc. common/rpc limits the size of a message, Protobuf checks UTF-8 and
// limits the nesting of messages, and parsers limit the nesting of workloads and traces.
inline constexpr int kMaxNameBytes = 4096;
inline constexpr int kMaxListEntries = 1 << 16;

// InvalidArgument: a text is too long, a list has too many entries, or a name contains a control
// character. The message contains the path of the field ("finished[3].result.detail").
absl::Status CheckMessage(const google::protobuf::Message& message);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_MESSAGE_LIMITS_H_
