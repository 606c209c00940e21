#include "tests/worker/runner/cuda_modules.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/target/cuda/context.h"
#include "tests/fakes/cuda/emulated_module.h"
#include "tests/status.h"

namespace hone::runner {
namespace {

std::string Compile(const std::string& source) {
  const absl::StatusOr<std::string> built = cuda::BuildEmulatedModule(source);
  EXPECT_THAT(built, IsOk());
  return built.value_or("");
}

}  // namespace

target::GpuModule CudaMatmulModule(absl::string_view extra) {
  constexpr absl::string_view kSource = R"(
extern "C" __global__ void __launch_bounds__(256) matmul(
    const float* A, const float* B, float* C, const float* packed, float* workspace) {
  __shared__ float a[256];
  __shared__ float b[256];
  const int x = threadIdx.x, y = threadIdx.y;
  const int i = blockIdx.y * 16 + y, j = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < 32; k += 16) {
    a[y * 16 + x] = A[i * 32 + k + x];
    b[y * 16 + x] = B[(k + y) * 48 + j];
    __syncthreads();
    for (int kk = 0; kk < 16; ++kk) sum += a[y * 16 + kk] * b[kk * 16 + x];
    __syncthreads();
  }
  EXTRA
  C[i * 48 + j] = sum;
}
)";
  return {.kind = target::Kind::kCuda,
          .arguments = 3,
          .launches = {{.kernel = "matmul",
                        .grid = {3, 4, 1},
                        .block = {16, 16, 1},
                        .shared_bytes = 2 * 16 * 16 * sizeof(float)}},
          .code = Compile(absl::StrReplaceAll(kSource, {{"EXTRA", extra}}))};
}

target::GpuModule CudaDenseSource() {
  constexpr char kSource[] = R"(
extern "C" __global__ void pack(
    const float* A, const float* W, float* C, float* packed, float* workspace) {
  const int j = blockIdx.x * 16 + threadIdx.x, k = blockIdx.y * 8 + threadIdx.y;
  packed[j * 16 + k] = W[k * 32 + j];
}
extern "C" __global__ void add(
    const float* A, const float* W, float* C, const float* packed, float* workspace) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  workspace[i] = A[i] + 1;
}
extern "C" __global__ void product(
    const float* A, const float* W, float* C, const float* packed, const float* workspace) {
  const int j = threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < 16; ++k) sum += workspace[i * 16 + k] * packed[j * 16 + k];
  C[i * 32 + j] = sum;
}
)";
  return {.kind = target::Kind::kCuda,
          .arguments = 3,
          .packed_bytes = 16 * 32 * sizeof(float),
          .workspace_bytes = 8 * 16 * sizeof(float),
          .launches = {{.kernel = "pack", .prepack = true, .grid = {2, 2, 1}, .block = {16, 8, 1}},
                       {.kernel = "add", .grid = {2, 1, 1}, .block = {64, 1, 1}},
                       {.kernel = "product", .grid = {1, 2, 1}, .block = {32, 4, 1}}},
          .code = kSource};
}

target::GpuModule CudaDenseModule() {
  target::GpuModule module = CudaDenseSource();
  module.code = Compile(module.code);
  return module;
}

absl::StatusOr<std::unique_ptr<target::GpuContext>> FakeCudaContext() {
  static const auto* const api =
      new absl::StatusOr<cuda::Api>(cuda::OpenApi(FAKE_CUDA_DIR "/libcuda.so.1"));
  HONE_RETURN_IF_ERROR(api->status());
  HONE_ASSIGN_OR_RETURN(const cuda::DeviceFacts facts, cuda::FindDevice(**api, "cuda"));
  return cuda::CudaContext::Create(**api, facts);
}

}  // namespace hone::runner
