#ifndef HONE_SERVER_SERVICE_MESSAGE_LIMITS_H_
#define HONE_SERVER_SERVICE_MESSAGE_LIMITS_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace hone::service {

// What any text or list of a request may hold; the texts that are more than names have their own
// limits in the table of the source. The size of a whole message is limited by common/rpc, nesting
// of messages and UTF-8 by Protobuf, nesting of workloads and traces by their parsers.
inline constexpr int kMaxNameBytes = 4096;
inline constexpr int kMaxListEntries = 1 << 16;

// InvalidArgument, with the field's way ("finished[3].result.detail"): a text that is too long, a
// list with too many entries, or a name with a control character.
absl::Status CheckMessage(const google::protobuf::Message& message);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_MESSAGE_LIMITS_H_
