#include "worker/runner/driver_setup.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace hone::runner {
namespace {

// Folders with descriptions of drivers and devices.
constexpr const char* kReadable[] = {"/etc/OpenCL",   "/etc/nvidia",   "/etc/localtime",
                                     "/opt",          "/proc/driver",  "/proc/devices",
                                     "/proc/modules", "/proc/version", "/proc/filesystems",
                                     "/proc/sys/vm",  "/sys"};
// Files of GPUs: NVIDIA's, those of the kernel's graphics drivers, AMD's, ARM's, Qualcomm's, and
// the memory that they share.
constexpr const char* kDevicePrefixes[] = {"nvidia", "dri", "kfd",      "mali",
                                           "kgsl",   "ion", "dma_heap", "udmabuf"};

}  // namespace

void PrepareForDriver(const std::string& scratch, SandboxOptions& sandbox) {
  for (const char* const variable : {"HOME", "TMPDIR", "XDG_CACHE_HOME", "POCL_CACHE_DIR"}) {
    setenv(variable, scratch.c_str(), 1);
  }
  // Each kernel is compiled only once, so a cache would only fill the folder.
  setenv("POCL_KERNEL_CACHE", "0", 1);
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  // Makes PoCL pin its threads, unless the user has set this.
  setenv("POCL_AFFINITY", "1", 0);
  sandbox.driver = true;
  sandbox.writable.push_back(scratch);
  for (const char* const path : kReadable) {
    if (access(path, F_OK) == 0) sandbox.readable.emplace_back(path);
  }
  // Drivers may be in the folders that the user names for libraries.
  const char* const libraries = getenv("LD_LIBRARY_PATH");
  for (const absl::string_view path : absl::StrSplit(libraries == nullptr ? "" : libraries, ':')) {
    const std::string folder(path);
    if (absl::StartsWith(folder, "/") && access(folder.c_str(), F_OK) == 0) {
      sandbox.readable.push_back(folder);
    }
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename();
    for (const char* const prefix : kDevicePrefixes) {
      if (absl::StartsWith(name, prefix)) sandbox.devices.push_back(entry.path());
    }
  }
}

}  // namespace hone::runner
