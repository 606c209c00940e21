#ifndef HONE_WORKER_AGENT_DISK_SHARE_H_
#define HONE_WORKER_AGENT_DISK_SHARE_H_

#include <cstdint>
#include <string>

namespace hone::agent {

// Free bytes of the disk that holds `folder`, or its nearest existing parent, for this user; 0 if
// it cannot be read.
int64_t AvailableBytes(const std::string& folder);

// How much a cache may hold: `wanted`, or half of what it could have – `available` bytes of the
// disk and the `own` bytes that it holds already – if that is less, so that a small card of a board
// never becomes full. At least a megabyte, without which nothing could be measured.
int64_t CacheBytes(int64_t wanted, int64_t available, int64_t own);

// The sum of the sizes of the files in a folder; 0 if it does not exist.
int64_t BytesIn(const std::string& folder);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_DISK_SHARE_H_
