#ifndef HONE_COMMON_RECORD_FRAMING_H_
#define HONE_COMMON_RECORD_FRAMING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// Messages over a pipe between the agent and its child processes: 4 bytes little-endian length,
// then the message. The descriptor stays in the mode that it is in; both functions wait with poll
// and never block longer than the deadline. One reader and one writer at a time per descriptor.
namespace hone::record {

inline constexpr size_t kMaxFrameBytes = 64 << 20;

// The next message.
// OutOfRange: the other end closed between two messages, the ordinary end. DataLoss: it closed
// inside one. InvalidArgument: the length is over kMaxFrameBytes; nothing after it can be trusted.
// DeadlineExceeded: not complete in time.
absl::StatusOr<std::string> ReadFrame(int fd, absl::Time deadline = absl::InfiniteFuture());

// Writes a whole message. The caller's process ignores SIGPIPE.
// InvalidArgument: longer than kMaxFrameBytes, nothing was written. Unavailable: the other end is
// closed. DeadlineExceeded: the reader is too slow; a part may have been written.
absl::Status WriteFrame(int fd, absl::string_view message,
                        absl::Time deadline = absl::InfiniteFuture());

// Whether a read would find bytes (or the end) at once.
bool HasInput(int fd);

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_FRAMING_H_
