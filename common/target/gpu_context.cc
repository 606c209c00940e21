#include "common/target/gpu_context.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/target/device_name.h"

namespace hone::target {
namespace {

constexpr size_t kMaxName = 128;

}  // namespace

std::string PrintableName(const GpuLaunch& launch) { return Printable(launch.kernel, kMaxName); }

std::string DeviceFailedText(absl::string_view first, absl::string_view last) {
  if (first == last) {
    return absl::StrCat("the device failed while it ran kernel '", first, "'");
  }
  return absl::StrCat("the device failed while it ran kernels '", first, "' to '", last, "'");
}

absl::Status RefuseLaunch(const GpuLaunch& launch, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("kernel '", PrintableName(launch), "' ", why));
}

absl::Status CheckLaunch(const GpuLaunch& launch, const GpuContext& context) {
  if (launch.Threads() > context.max_threads) {
    return RefuseLaunch(launch, absl::StrCat("has blocks of ", launch.Threads(),
                                             " threads; the device allows ", context.max_threads));
  }
  for (size_t d = 0; d < launch.block.size(); ++d) {
    if (launch.block[d] > context.max_block[d]) {
      return RefuseLaunch(launch, absl::StrCat("has blocks of ", absl::StrJoin(launch.block, " × "),
                                               " threads; the device allows ",
                                               absl::StrJoin(context.max_block, " × ")));
    }
    if (launch.grid[d] > context.max_grid[d]) {
      return RefuseLaunch(launch, absl::StrCat("has ", absl::StrJoin(launch.grid, " × "),
                                               " blocks; the device allows ",
                                               absl::StrJoin(context.max_grid, " × ")));
    }
    // Some drivers count the threads of a dimension with 32 bits.
    if (launch.grid[d] * launch.block[d] > std::numeric_limits<uint32_t>::max()) {
      return RefuseLaunch(launch,
                          absl::StrCat("has ", launch.grid[d], " blocks of ", launch.block[d],
                                       " threads in dimension ", d, "; 2^32 is too many"));
    }
  }
  if (launch.shared_bytes > context.shared_bytes) {
    return RefuseLaunch(
        launch, absl::StrCat("uses ", launch.shared_bytes,
                             " bytes of shared memory; the device has ", context.shared_bytes));
  }
  return absl::OkStatus();
}

}  // namespace hone::target
