#include "worker/runner/gpu_launch.h"

#include "absl/strings/str_cat.h"
#include "common/target/device_name.h"

namespace hone::runner {
namespace {

constexpr size_t kMaxName = 128;

}  // namespace

std::string PrintableName(const target::GpuLaunch& launch) {
  return target::Printable(launch.kernel, kMaxName);
}

absl::Status RefuseLaunch(const target::GpuLaunch& launch, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("kernel '", PrintableName(launch), "' ", why));
}

}  // namespace hone::runner
