#include "tests/worker/codegen/nvrtc_check.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hone::codegen {
namespace {

namespace fs = std::filesystem;

// nvrtc.h, as far as it is used.
using Program = void*;
struct Api {
  int (*create)(Program*, const char* source, const char* name, int, const char* const*,
                const char* const*);
  int (*destroy)(Program*);
  int (*compile)(Program, int count, const char* const* options);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*ptx_size)(Program, size_t*);
  int (*ptx)(Program, char*);
};

std::vector<std::string> Candidates() {
  if (const char* const path = std::getenv("HONE_NVRTC"); path != nullptr) return {path};
  std::vector<std::string> candidates = {"libnvrtc.so.13", "libnvrtc.so.12"};
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::error_code error;
  const std::string folder = cache != nullptr  ? absl::StrCat(cache, "/hone/nvrtc/nvidia")
                             : home != nullptr ? absl::StrCat(home, "/.cache/hone/nvrtc/nvidia")
                                               : "";
  for (const auto& package : fs::directory_iterator(folder, error)) {
    for (const char* const name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
      const fs::path path = package.path() / "lib" / name;
      if (fs::exists(path, error)) candidates.push_back(path);
    }
  }
  return candidates;
}

// nullptr if there is no library.
const Api* Loaded() {
  static const Api* const loaded = []() -> const Api* {
    void* library = nullptr;
    for (const std::string& path : Candidates()) {
      library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) break;
    }
    if (library == nullptr) return nullptr;
    auto* const api = new Api;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    };
    find(api->create, "nvrtcCreateProgram");
    find(api->destroy, "nvrtcDestroyProgram");
    find(api->compile, "nvrtcCompileProgram");
    find(api->log_size, "nvrtcGetProgramLogSize");
    find(api->log, "nvrtcGetProgramLog");
    find(api->ptx_size, "nvrtcGetPTXSize");
    find(api->ptx, "nvrtcGetPTX");
    return api;
  }();
  return loaded;
}

// Without the 0 at the end.
std::string Get(Program program, int (*size)(Program, size_t*), int (*get)(Program, char*)) {
  size_t bytes = 0;
  if (size(program, &bytes) != 0 || bytes == 0) return "";
  std::string text(bytes, '\0');
  get(program, text.data());
  text.pop_back();
  return text;
}

}  // namespace

bool HasNvrtc() { return Loaded() != nullptr; }

NvrtcResult CompileWithNvrtc(const std::string& text, absl::string_view architecture) {
  const Api& api = *Loaded();
  Program program = nullptr;
  NvrtcResult result;
  if (api.create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) {
    return {"nvrtcCreateProgram fails", ""};
  }
  const std::string target = absl::StrCat("--gpu-architecture=", architecture);
  const char* const options[] = {target.c_str(), "--std=c++17"};
  const int code = api.compile(program, 2, options);
  const std::string log = Get(program, api.log_size, api.log);
  if (code != 0 || !log.empty()) result.errors = absl::StrCat(text, "\n", architecture, ":\n", log);
  if (code == 0) result.ptx = Get(program, api.ptx_size, api.ptx);
  api.destroy(&program);
  return result;
}

}  // namespace hone::codegen
