// The places where NVRTC is searched for.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/builder/nvrtc.h"

namespace hone::builder {
namespace {

namespace fs = std::filesystem;

struct Library {
  const char* name;
  int major;  // of its CUDA
};
constexpr Library kLibraries[] = {{"libnvrtc.so.13", 13}, {"libnvrtc.so.12", 12}};  // newest first

int MajorOf(const std::string& path) {
  for (const Library& library : kLibraries) {
    if (absl::EndsWith(path, library.name)) return library.major;
  }
  return 0;
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the folders whose names begin like this: longer names first, because their versions have
// more digits (python3.12, python3.9).
std::vector<std::string> FoldersIn(const std::string& folder, const char* prefix) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (absl::StartsWith(entry.path().filename().string(), prefix)) found.push_back(entry.path());
  }
  std::ranges::sort(found, std::greater(),
                    [](const std::string& path) { return std::pair(path.size(), path); });
  return found;
}

void AddFolders(const std::vector<std::string>& folders, std::vector<std::string>& candidates) {
  std::error_code error;
  for (const Library& library : kLibraries) {
    for (const std::string& folder : folders) {
      const fs::path path = fs::path(folder) / library.name;
      if (fs::exists(path, error)) candidates.push_back(path);
    }
  }
}

// Adds what pip installs into a folder of packages: nvidia/cuda_nvrtc/lib for CUDA 12,
// nvidia/cu13/lib for CUDA 13.
void AddPackages(const std::string& packages, std::vector<std::string>& candidates) {
  std::vector<std::string> folders = FoldersIn(packages + "/nvidia", "cu");
  for (std::string& folder : folders) folder += "/lib";
  AddFolders(folders, candidates);
}

// Moves the libraries to the end whose code the driver is too old for.
std::vector<std::string> ForDriver(int driver_major, std::vector<std::string> candidates) {
  if (driver_major == 0) return candidates;
  std::ranges::stable_partition(
      candidates, [&](const std::string& path) { return MajorOf(path) <= driver_major; });
  return candidates;
}

}  // namespace

std::vector<std::string> NvrtcCandidates(int driver_major) {
  std::vector<std::string> candidates;
  if (const std::string named = Variable("HONE_NVRTC"); !named.empty()) {
    std::error_code error;
    if (!fs::is_directory(named, error)) return {named};
    AddFolders({named}, candidates);
    AddPackages(named, candidates);
    // The user's choice is not replaced by another one.
    if (candidates.empty()) candidates.push_back(absl::StrCat(named, "/", kLibraries[0].name));
    return ForDriver(driver_major, std::move(candidates));
  }
  for (const Library& library : kLibraries) candidates.emplace_back(library.name);
  for (const std::string& root : {Variable("CUDA_HOME"), std::string("/usr/local/cuda")}) {
    if (!root.empty()) AddFolders({root + "/lib64"}, candidates);
  }
  // Where deploy/install-deps.sh puts it.
  const std::string cache = Variable("XDG_CACHE_HOME"), home = Variable("HOME");
  if (!cache.empty() || !home.empty()) {
    AddPackages((cache.empty() ? home + "/.cache" : cache) + "/hone/nvrtc", candidates);
  }
  std::vector<std::string> pythons;  // folders that have python3.*
  for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string root = Variable(variable); !root.empty())
      pythons.push_back(root + "/lib");
  }
  if (!home.empty()) pythons.push_back(home + "/.local/lib");
  pythons.insert(pythons.end(), {"/usr/local/lib", "/usr/lib"});
  for (const std::string& folder : pythons) {
    for (const std::string& python : FoldersIn(folder, "python3")) {
      AddPackages(python + "/site-packages", candidates);
      AddPackages(python + "/dist-packages", candidates);
    }
  }
  return ForDriver(driver_major, std::move(candidates));
}

}  // namespace hone::builder
