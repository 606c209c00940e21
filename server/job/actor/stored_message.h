#ifndef HONE_SERVER_JOB_ACTOR_STORED_MESSAGE_H_
#define HONE_SERVER_JOB_ACTOR_STORED_MESSAGE_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/record/message_fields.h"

namespace hone::job {

// The version of the messages in job_state.proto, which says when it must be raised.
inline constexpr int kStoredVersion = 1;

// Copy the fields that the description of T names (common/record/fields.h) to and from a message.
template <typename T>
void WriteFields(const T& value, google::protobuf::Message& message) {
  record::MessageWriter writer(message);
  VisitFields(value, writer);
}
template <typename T>
absl::Status ReadFields(const google::protobuf::Message& message, T& value) {
  record::MessageReader reader(message, /*check=*/false);
  VisitFields(value, reader);
  return reader.status();
}

// Parses a stored message. `what` is its name in errors. DataLoss: the bytes are not such a
// message. FailedPrecondition: a newer release wrote it; the error says what to do.
template <typename Message>
absl::Status ParseStored(absl::string_view bytes, absl::string_view what, Message& message) {
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      message.version() < 1) {
    return absl::DataLossError(absl::StrCat(what, " cannot be read"));
  }
  if (message.version() <= kStoredVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is of version ", message.version(),
                   ", but this program only supports versions up to ", kStoredVersion,
                   ": start the newer hone-server that wrote it, or restore an older backup"));
}

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_STORED_MESSAGE_H_
