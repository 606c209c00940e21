#include "worker/runner/timing_lock.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::runner {
namespace {

constexpr char kPciDevices[] = "/sys/bus/pci/devices";
// Of GPUs that have no file of their own.
constexpr char kOtherGpus[] = "gpu";

// Whether a PCI class is that of displays, 3D controllers or accelerators.
bool IsClassOfGpus(absl::string_view pci_class) {
  return absl::StartsWith(pci_class, "0x03") || absl::StartsWith(pci_class, "0x12");
}

std::string FileOf(const std::string& path, const std::string& device) {
  return absl::StrCat(path, ".", device);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TimingLock::MakeFiles(const std::string& path) {
  std::vector<std::string> files = HostLock::Files(path);
  files.push_back(FileOf(path, kOtherGpus));
  std::error_code no_pci;
  for (const auto& device : std::filesystem::directory_iterator(kPciDevices, no_pci)) {
    const absl::StatusOr<std::string> pci_class = ReadFile(device.path() / "class");
    if (pci_class.ok() && IsClassOfGpus(*pci_class)) {
      files.push_back(FileOf(path, device.path().filename()));
    }
  }
  for (const std::string& file : files) HONE_RETURN_IF_ERROR(FileLock::Open(file).status());
  return files;
}

absl::Status TimingLock::Acquire(const std::string& path, const std::string& device,
                                 absl::Time deadline) {
  Release();
  if (device.empty()) {
    HONE_ASSIGN_OR_RETURN(host_, HostLock::Acquire(HostLock::Mode::kExclusive, deadline, path));
    return absl::OkStatus();
  }
  // First the device's, so that nobody else waits while this process does.
  const std::string own = FileOf(path, device);
  const bool has_file = access(own.c_str(), F_OK) == 0;
  HONE_ASSIGN_OR_RETURN(FileLock of_device,
                        FileLock::Open(has_file ? own : FileOf(path, kOtherGpus)));
  HONE_RETURN_IF_ERROR(of_device.Lock(FileLock::Mode::kExclusive, deadline));
  HONE_ASSIGN_OR_RETURN(host_, HostLock::Acquire(HostLock::Mode::kDevice, deadline, path));
  device_ = std::move(of_device);
  return absl::OkStatus();
}

void TimingLock::Release() {
  host_.Release();
  device_.Close();
}

}  // namespace hone::runner
