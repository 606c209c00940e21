#include "common/record/framing.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::record {
namespace {

// Waits until `fd` is ready for `events` (or is closed, which the read or write then reports).
absl::Status WaitUntilReady(int fd, short events, absl::Time deadline) {
  for (;;) {
    int timeout_ms = -1;
    if (deadline != absl::InfiniteFuture()) {
      const absl::Duration left = deadline - SteadyNow();
      timeout_ms = static_cast<int>(std::clamp<int64_t>(
          absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))), 0, INT_MAX));
    }
    pollfd descriptor = {.fd = fd, .events = events, .revents = 0};
    const int ready = poll(&descriptor, 1, timeout_ms);
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) {
      if (SteadyNow() >= deadline) return absl::DeadlineExceededError("no message in time");
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, "poll");
    }
  }
}

// Fills `buffer`; returns how many bytes came before the other end closed.
absl::StatusOr<size_t> ReadAll(int fd, char* buffer, size_t size, absl::Time deadline) {
  size_t done = 0;
  while (done < size) {
    HONE_RETURN_IF_ERROR(WaitUntilReady(fd, POLLIN, deadline));
    const ssize_t n = read(fd, buffer + done, size - done);
    if (n == 0) break;
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (errno == ECONNRESET) {
      break;
    } else if (errno != EINTR && errno != EAGAIN) {
      return ErrnoStatus(errno, "read a message");
    }
  }
  return done;
}

absl::Status WriteAll(int fd, absl::string_view bytes, absl::Time deadline) {
  while (!bytes.empty()) {
    HONE_RETURN_IF_ERROR(WaitUntilReady(fd, POLLOUT, deadline));
    // A blocking pipe that poll reports as ready takes PIPE_BUF bytes without blocking; more may
    // block.
    const ssize_t n = write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return absl::UnavailableError("the other end is closed");
    } else if (errno != EINTR && errno != EAGAIN) {
      return ErrnoStatus(errno, "write a message");
    }
  }
  return absl::OkStatus();
}

absl::Status Truncated(size_t got, size_t expected) {
  return absl::DataLossError(absl::StrCat("the other end closed inside a message, after ", got,
                                          " of ", expected, " bytes"));
}

}  // namespace

absl::StatusOr<std::string> ReadFrame(int fd, absl::Time deadline) {
  unsigned char header[4];
  HONE_ASSIGN_OR_RETURN(const size_t header_bytes,
                        ReadAll(fd, reinterpret_cast<char*>(header), sizeof header, deadline));
  if (header_bytes == 0) return absl::OutOfRangeError("the other end closed");
  if (header_bytes < sizeof header) return Truncated(header_bytes, sizeof header);
  size_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | header[i];
  if (length > kMaxFrameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", length, " bytes, at most ", kMaxFrameBytes, " allowed"));
  }
  std::string message(length, '\0');
  HONE_ASSIGN_OR_RETURN(const size_t got, ReadAll(fd, message.data(), length, deadline));
  if (got < length) return Truncated(got, length);
  return message;
}

absl::Status WriteFrame(int fd, absl::string_view message, absl::Time deadline) {
  if (message.size() > kMaxFrameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", message.size(),
                                                   " bytes, at most ", kMaxFrameBytes, " allowed"));
  }
  char header[4];
  for (int i = 0; i < 4; ++i) header[i] = static_cast<char>(message.size() >> 8 * i);
  HONE_RETURN_IF_ERROR(WriteAll(fd, {header, sizeof header}, deadline));
  return WriteAll(fd, message, deadline);
}

bool HasInput(int fd) {
  pollfd descriptor = {.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&descriptor, 1, 0) > 0;
}

}  // namespace hone::record
