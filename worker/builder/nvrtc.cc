#include "worker/builder/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/target/cuda/api.h"

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

using Program = struct ProgramObject*;

constexpr int kCompilation = 6;    // NVRTC_ERROR_COMPILATION
constexpr int kInvalidOption = 5;  // NVRTC_ERROR_INVALID_OPTION
constexpr int kOldestMajor = 12;   // the first version with the options that are used below
constexpr size_t kMaxLog = 8192;

absl::Status NotFound(absl::string_view why) {
  return absl::NotFoundError(absl::StrCat(
      "NVRTC, NVIDIA's compiler for CUDA C++, cannot be used: ", why,
      "; install it with the CUDA toolkit, or with pip install nvidia-cuda-nvrtc-cu12, or name the "
      "file libnvrtc.so.12 or its folder in the environment variable HONE_NVRTC"));
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

namespace {

// Those of this machine, found once.
const std::vector<std::string>& CandidatesHere() {
  static const auto* const candidates =
      new std::vector<std::string>(NvrtcCandidates(cuda::DriverVersion() / 1000));
  return *candidates;
}

}  // namespace

std::vector<std::string> NvrtcFolders() {
  std::vector<std::string> folders = absl::StrSplit(Variable("LD_LIBRARY_PATH"), ':');
  for (const std::string& candidate : CandidatesHere()) {
    // The library may be a link to a file in another folder.
    std::error_code error;
    folders.push_back(fs::path(candidate).parent_path());
    folders.push_back(fs::canonical(candidate, error).parent_path());
  }
  std::erase_if(folders, [](const std::string& folder) {
    std::error_code error;
    return !absl::StartsWith(folder, "/") || !fs::is_directory(folder, error);
  });
  std::ranges::sort(folders);
  folders.erase(std::ranges::unique(folders).begin(), folders.end());
  return folders;
}

// The functions of the library that are used here, without the prefix "nvrtc". Those that return a
// code return 0 on success.
struct Nvrtc::Api {
  int (*Version)(int*, int*) = nullptr;
  const char* (*GetErrorString)(int) = nullptr;
  int (*GetNumSupportedArchs)(int*) = nullptr;
  int (*GetSupportedArchs)(int*) = nullptr;
  int (*CreateProgram)(Program*, const char*, const char*, int, const char* const*,
                       const char* const*) = nullptr;
  int (*DestroyProgram)(Program*) = nullptr;
  int (*CompileProgram)(Program, int, const char* const*) = nullptr;
  int (*GetPTXSize)(Program, size_t*) = nullptr;
  int (*GetPTX)(Program, char*) = nullptr;
  int (*GetCUBINSize)(Program, size_t*) = nullptr;
  int (*GetCUBIN)(Program, char*) = nullptr;
  int (*GetProgramLogSize)(Program, size_t*) = nullptr;
  int (*GetProgramLog)(Program, char*) = nullptr;

  // Loads the functions. Returns the name of the first one that the library lacks; "" if it has
  // all.
  std::string Load(void* handle) {
    std::string missing;
    const auto load = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, name));
      if (function == nullptr && missing.empty()) missing = name;
    };
    load(Version, "nvrtcVersion");
    load(GetErrorString, "nvrtcGetErrorString");
    load(GetNumSupportedArchs, "nvrtcGetNumSupportedArchs");
    load(GetSupportedArchs, "nvrtcGetSupportedArchs");
    load(CreateProgram, "nvrtcCreateProgram");
    load(DestroyProgram, "nvrtcDestroyProgram");
    load(CompileProgram, "nvrtcCompileProgram");
    load(GetPTXSize, "nvrtcGetPTXSize");
    load(GetPTX, "nvrtcGetPTX");
    load(GetCUBINSize, "nvrtcGetCUBINSize");
    load(GetCUBIN, "nvrtcGetCUBIN");
    load(GetProgramLogSize, "nvrtcGetProgramLogSize");
    load(GetProgramLog, "nvrtcGetProgramLog");
    return missing;
  }

  // Returns one of the compiler's outputs; "" if the compilation has no such output.
  static std::string Take(int (*size)(Program, size_t*), int (*get)(Program, char*),
                          Program program) {
    size_t bytes = 0;
    if (size(program, &bytes) != 0 || bytes == 0) return "";
    std::string content(bytes, '\0');
    if (get(program, content.data()) != 0) return "";
    return content;
  }
};

Nvrtc::Nvrtc(std::unique_ptr<Api> api, std::string path)
    : api_(std::move(api)), path_(std::move(path)) {}

absl::StatusOr<std::unique_ptr<Nvrtc>> Nvrtc::Open(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return NotFound(dlerror());
  auto api = std::make_unique<Api>();
  if (const std::string missing = api->Load(handle); !missing.empty()) {
    return NotFound(absl::StrCat(library, " has no ", missing));
  }
  Dl_info info = {};
  dladdr(reinterpret_cast<void*>(api->Version), &info);
  auto nvrtc = std::unique_ptr<Nvrtc>(
      new Nvrtc(std::move(api), info.dli_fname == nullptr ? library : info.dli_fname));
  int major = 0, minor = 0;
  HONE_RETURN_IF_ERROR(nvrtc->Check(nvrtc->api_->Version(&major, &minor), "tell its version"));
  if (major >= kOldestMajor) return nvrtc;
  return NotFound(
      absl::StrCat(nvrtc->path(), " belongs to CUDA ", major, ".", minor, ", which is too old"));
}

absl::StatusOr<const Nvrtc*> Nvrtc::Loaded() {
  static const auto* const loaded = new absl::StatusOr<std::unique_ptr<Nvrtc>>([] {
    absl::StatusOr<std::unique_ptr<Nvrtc>> opened = NotFound("there is no library");
    for (const std::string& candidate : CandidatesHere()) {
      opened = Open(candidate);
      if (opened.ok()) return opened;
    }
    return opened;
  }());
  HONE_RETURN_IF_ERROR(loaded->status());
  return loaded->value().get();
}

absl::Status Nvrtc::Check(int code, const char* what) const {
  if (code == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("NVRTC (", path_, ") could not ", what, ": ", api_->GetErrorString(code)));
}

std::string Nvrtc::Version() const {
  int major = 0, minor = 0;
  api_->Version(&major, &minor);
  return absl::StrCat(major, ".", minor);
}

std::vector<std::string> Nvrtc::Architectures() const {
  int count = 0;
  if (api_->GetNumSupportedArchs(&count) != 0 || count <= 0) return {};
  std::vector<int> numbers(static_cast<size_t>(count));
  if (api_->GetSupportedArchs(numbers.data()) != 0) return {};
  std::vector<std::string> names;
  for (const int number : numbers) names.push_back(absl::StrCat("sm_", number));
  return names;
}

absl::StatusOr<CompiledCuda> Nvrtc::Compile(const std::string& source,
                                            const std::string& architecture) const {
  Program program = nullptr;
  HONE_RETURN_IF_ERROR(
      Check(api_->CreateProgram(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr),
            "load the source"));
  const absl::Cleanup destroy = [&] { api_->DestroyProgram(&program); };
  // By default, NVRTC contracts a product and a sum to a fused multiply-add.
  const std::string gpu = absl::StrCat("--gpu-architecture=", architecture);
  const char* const options[] = {gpu.c_str(), "--std=c++17", "-Xptxas", "-v"};
  const int code = api_->CompileProgram(program, std::size(options), options);
  std::string log = Api::Take(api_->GetProgramLogSize, api_->GetProgramLog, program);
  log = std::string(absl::StripAsciiWhitespace(log.c_str()));
  if (code == kInvalidOption) {
    return absl::FailedPreconditionError(
        absl::StrCat("NVRTC ", Version(), " (", path_, ") does not compile for ", architecture,
                     ", only for ", absl::StrJoin(Architectures(), ", "),
                     "; install a version of NVRTC that does. Its log: ", log));
  }
  if (code == kCompilation) {
    return absl::InvalidArgumentError(
        absl::StrCat("NVRTC refuses the source:\n", absl::string_view(log).substr(0, kMaxLog)));
  }
  HONE_RETURN_IF_ERROR(Check(code, "compile"));
  CompiledCuda compiled{.cubin = Api::Take(api_->GetCUBINSize, api_->GetCUBIN, program),
                        .ptx = Api::Take(api_->GetPTXSize, api_->GetPTX, program),
                        .log = std::move(log)};
  // NVRTC ends the text with a zero byte.
  while (!compiled.ptx.empty() && compiled.ptx.back() == '\0') compiled.ptx.pop_back();
  if (!compiled.cubin.empty()) return compiled;
  return absl::InternalError(absl::StrCat("NVRTC (", path_, ") did not make a cubin"));
}

}  // namespace hone::builder
