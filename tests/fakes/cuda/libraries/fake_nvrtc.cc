// libnvrtc.so.12 for tests, see README.md.
#include <cstring>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fakes/cuda/libraries/compile_helper.h"

namespace {

constexpr int kInvalidOption = 5, kCompilation = 6;
constexpr int kArchitectures[] = {75, 80, 86, 89, 90, 100};

struct Program {
  std::string source, log, cubin, ptx;
};

int Compile(Program& program) {
  const absl::StatusOr<std::string> built = hone::fakes::CompileForFakes(program.source);
  program.log = std::string(built.status().message());
  program.cubin = built.value_or("");
  program.ptx = "// emulated: there is no PTX\n";
  return built.ok() ? 0 : kCompilation;
}

int Take(const std::string& content, char* to) {
  std::memcpy(to, content.data(), content.size());
  return 0;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 9;
  return 0;
}
const char* nvrtcGetErrorString(int code) {
  return code == kInvalidOption ? "NVRTC_ERROR_INVALID_OPTION" : "NVRTC_ERROR_COMPILATION";
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = std::size(kArchitectures);
  return 0;
}
int nvrtcGetSupportedArchs(int* architectures) {
  std::memcpy(architectures, kArchitectures, sizeof(kArchitectures));
  return 0;
}
int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program{.source = source};
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  return 0;
}
int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  bool known = false;
  for (int i = 0; i < count; ++i) {
    for (const int architecture : kArchitectures) {
      known = known ||
              absl::StartsWith(options[i], absl::StrCat("--gpu-architecture=sm_", architecture));
    }
  }
  if (known) return Compile(*static_cast<Program*>(program));
  static_cast<Program*>(program)->log = "nvrtc: error: invalid value for --gpu-architecture";
  return kInvalidOption;
}
int nvrtcGetPTXSize(void* program, size_t* size) {
  *size = static_cast<Program*>(program)->ptx.size();
  return 0;
}
int nvrtcGetPTX(void* program, char* to) { return Take(static_cast<Program*>(program)->ptx, to); }
int nvrtcGetCUBINSize(void* program, size_t* size) {
  *size = static_cast<Program*>(program)->cubin.size();
  return 0;
}
int nvrtcGetCUBIN(void* program, char* to) {
  return Take(static_cast<Program*>(program)->cubin, to);
}
int nvrtcGetProgramLogSize(void* program, size_t* size) {
  *size = static_cast<Program*>(program)->log.size();
  return 0;
}
int nvrtcGetProgramLog(void* program, char* to) {
  return Take(static_cast<Program*>(program)->log, to);
}

}  // extern "C"
