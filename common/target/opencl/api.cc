#include "common/target/opencl/api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace hone::opencl {
namespace {

absl::Status NotInstalled(absl::string_view why) {
  return absl::NotFoundError(
      absl::StrCat("OpenCL cannot be used: ", why,
                   "; install ocl-icd-libopencl1 and a driver, such as pocl-opencl-icd"));
}

}  // namespace

absl::StatusOr<Api> OpenApi(const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return NotInstalled(dlerror());
  Api api;
#define HONE_OPENCL_LOAD(name)                                                \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(handle, "cl" #name)); \
  if (api.name == nullptr) return NotInstalled(absl::StrCat(library, " has no cl" #name));
  HONE_OPENCL_FUNCTIONS(HONE_OPENCL_LOAD)
#undef HONE_OPENCL_LOAD
  return api;
}

absl::StatusOr<const Api*> LoadedApi() {
  static const absl::StatusOr<Api>* const api = new absl::StatusOr<Api>(OpenApi("libOpenCL.so.1"));
  HONE_RETURN_IF_ERROR(api->status());
  return &**api;
}

}  // namespace hone::opencl
