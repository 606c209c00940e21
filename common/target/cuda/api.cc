#include "common/target/cuda/api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/cuda/error.h"

namespace hone::cuda {
namespace {

constexpr char kCudaLibrary[] = "libcuda.so.1";

}  // namespace

absl::StatusOr<Api> OpenApi(const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::NotFoundError(absl::StrCat("CUDA cannot be used: ", dlerror(),
                                            "; install NVIDIA's driver; in a container, start it "
                                            "with access to the GPUs (docker run --gpus all)"));
  }
  Api api;
#define HONE_CUDA_LOAD(name, symbol, ...)                                           \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(handle, #symbol));          \
  if (api.name == nullptr) {                                                        \
    return absl::NotFoundError(absl::StrCat("CUDA cannot be used: ", library,       \
                                            " has no " #symbol                      \
                                            "; install a newer driver of NVIDIA")); \
  }
  HONE_CUDA_FUNCTIONS(HONE_CUDA_LOAD)
#undef HONE_CUDA_LOAD
  HONE_RETURN_IF_ERROR(ToStatus(api.Init(0), "start the CUDA driver"));
  return api;
}

int DriverVersion() {
  void* const handle = dlopen(kCudaLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return 0;
  const auto get =
      reinterpret_cast<decltype(Api::DriverGetVersion)>(dlsym(handle, "cuDriverGetVersion"));
  int version = 0;
  return get != nullptr && get(&version) == 0 ? version : 0;
}

absl::StatusOr<const Api*> LoadedApi() {
  static const absl::StatusOr<Api>* const api = new absl::StatusOr<Api>(OpenApi(kCudaLibrary));
  HONE_RETURN_IF_ERROR(api->status());
  return &**api;
}

}  // namespace hone::cuda
