#include "client/network/plan/partition_options.h"

#include <cstdint>

namespace hone::network {
namespace {

// OpenCL drivers only accept parts of buffers that begin at multiples of a number of bytes, which
// depends on the driver. This is the largest one of common GPUs.
constexpr int64_t kOpenClAlignment = 512;

}  // namespace

graph::PartitionOptions PartitionOptionsFor(target::Kind kind) {
  graph::PartitionOptions options;
  if (kind == target::Kind::kOpenCl) options.alignment = kOpenClAlignment;
  return options;
}

}  // namespace hone::network
