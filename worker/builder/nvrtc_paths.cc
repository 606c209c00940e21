// The places where NVRTC is searched for.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/builder/nvrtc.h"

namespace hone::builder {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraries[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> FoldersIn(const std::string& folder, const char* prefix) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (absl::StartsWith(entry.path().filename().string(), prefix)) found.push_back(entry.path());
  }
  std::ranges::sort(found, std::greater());  // newer versions first
  return found;
}

void AddFolder(const std::string& folder, std::vector<std::string>& candidates) {
  std::error_code error;
  for (const char* const library : kLibraries) {
    const fs::path path = fs::path(folder) / library;
    if (fs::exists(path, error)) candidates.push_back(path);
  }
}

// Adds what pip installs into a folder of packages: nvidia/cuda_nvrtc/lib for CUDA 12,
// nvidia/cu13/lib for CUDA 13.
void AddPackages(const std::string& packages, std::vector<std::string>& candidates) {
  for (const std::string& package : FoldersIn(packages + "/nvidia", "cu")) {
    AddFolder(package + "/lib", candidates);
  }
}

}  // namespace

std::vector<std::string> NvrtcCandidates() {
  std::vector<std::string> candidates;
  if (const std::string named = Variable("HONE_NVRTC"); !named.empty()) {
    std::error_code error;
    if (!fs::is_directory(named, error)) return {named};
    AddFolder(named, candidates);
    AddPackages(named, candidates);
    // The user's choice is not replaced by another one.
    if (candidates.empty()) candidates.push_back(absl::StrCat(named, "/", kLibraries[0]));
    return candidates;
  }
  for (const char* const library : kLibraries) candidates.emplace_back(library);
  for (const std::string& root : {Variable("CUDA_HOME"), std::string("/usr/local/cuda")}) {
    if (!root.empty()) AddFolder(root + "/lib64", candidates);
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
  return candidates;
}

}  // namespace hone::builder
