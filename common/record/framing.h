#ifndef HONE_COMMON_RECORD_FRAMING_H_
#define HONE_COMMON_RECORD_FRAMING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// Messages over a pipe between the agent and its child processes: a length of 4 bytes,
// little-endian, then the message. The descriptor may be blocking or not; both functions wait with
// poll and never block beyond the deadline. Only one reader and one writer may use a descriptor at
// a time.
namespace hone::record {

inline constexpr size_t kMaxFrameBytes = 64 << 20;

// Reads the next message. OutOfRange: the other end was closed between two messages, which is the
// normal end. DataLoss: it was closed within a message. InvalidArgument: the length is over
// kMaxFrameBytes, so the rest of the stream is useless. DeadlineExceeded: the message was not
// complete in time.
absl::StatusOr<std::string> ReadFrame(int fd, absl::Time deadline = absl::InfiniteFuture());

// Writes a whole message. InvalidArgument: it is longer than kMaxFrameBytes; nothing was written.
// Unavailable: the other end is closed. DeadlineExceeded: the reader is too slow; a part may have
// been written. REQUIRES: the process ignores SIGPIPE.
absl::Status WriteFrame(int fd, absl::string_view message,
                        absl::Time deadline = absl::InfiniteFuture());

// Whether a read would return bytes, or the end of the stream, without waiting.
bool HasInput(int fd);

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_FRAMING_H_
