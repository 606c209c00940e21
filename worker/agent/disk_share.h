#ifndef HONE_WORKER_AGENT_DISK_SHARE_H_
#define HONE_WORKER_AGENT_DISK_SHARE_H_

#include <cstdint>
#include <string>

namespace hone::agent {

// Returns the bytes that this user can still write to the disk of `folder`, or of its nearest
// existing parent; 0 if unknown.
int64_t AvailableBytes(const std::string& folder);

// Returns the size limit of a cache: `wanted` bytes, but at most half of the space that it could
// use, which is the `available` bytes of the disk and the `own` bytes that it holds already. A
// cache thus never fills the small card of a board. At least 1 MB, the least with which anything
// can be measured.
int64_t CacheBytes(int64_t wanted, int64_t available, int64_t own);

// Returns the sum of the sizes of the files in a folder; 0 if it does not exist.
int64_t BytesIn(const std::string& folder);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_DISK_SHARE_H_
