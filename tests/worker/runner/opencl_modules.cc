#include "tests/worker/runner/opencl_modules.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/record/artifact.h"
#include "common/target/opencl/targets.h"
#include "tests/status.h"

namespace hone::runner {

std::string WhyNoOpenCl() {
  setenv("POCL_KERNEL_CACHE", "0", 0);  // tests leave nothing in the home folder
  const absl::Status found = opencl::TargetOf("opencl").status();
  return std::string(found.message());
}

target::GpuModule MatmulModule(absl::string_view extra) {
  constexpr absl::string_view kSource = R"(
kernel void matmul(global float* A, global float* B, global float* C,
                   global float* packed, global float* workspace) {
  local float a[16][16], b[16][16];
  const int x = get_local_id(0), y = get_local_id(1);
  const int i = get_group_id(1) * 16 + y, j = get_group_id(0) * 16 + x;
  float sum = 0;
  for (int k = 0; k < 32; k += 16) {
    a[y][x] = A[i * 32 + k + x];
    b[y][x] = B[(k + y) * 48 + j];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int kk = 0; kk < 16; ++kk) sum = fma(a[y][kk], b[kk][x], sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  EXTRA
  C[i * 48 + j] = sum;
}
)";
  return {.arguments = 3,
          .launches = {{.kernel = "matmul",
                        .grid = {3, 4, 1},
                        .block = {16, 16, 1},
                        .shared_bytes = 2 * 16 * 16 * sizeof(float)}},
          .code = absl::StrReplaceAll(kSource, {{"EXTRA", extra}})};
}

target::GpuModule DenseModule() {
  constexpr char kSource[] = R"(
kernel void pack(global const float* A, global const float* W, global float* C,
                 global float* packed, global float* workspace) {
  const int j = get_global_id(0), k = get_global_id(1);
  packed[j * 16 + k] = W[k * 32 + j];
}
kernel void add(global const float* A, global const float* W, global float* C,
                global const float* packed, global float* workspace) {
  const int i = get_global_id(0);
  workspace[i] = A[i] + 1;
}
kernel void product(global const float* A, global const float* W, global float* C,
                    global const float* packed, global const float* workspace) {
  const int j = get_global_id(0), i = get_global_id(1);
  float sum = 0;
  for (int k = 0; k < 16; ++k) sum += workspace[i * 16 + k] * packed[j * 16 + k];
  C[i * 32 + j] = sum;
}
)";
  return {.arguments = 3,
          .packed_bytes = 16 * 32 * sizeof(float),
          .workspace_bytes = 8 * 16 * sizeof(float),
          .launches = {{.kernel = "pack", .prepack = true, .grid = {2, 2, 1}, .block = {16, 8, 1}},
                       {.kernel = "add", .grid = {2, 1, 1}, .block = {64, 1, 1}},
                       {.kernel = "product", .grid = {1, 2, 1}, .block = {32, 4, 1}}},
          .code = kSource};
}

std::string WriteModule(const std::string& folder, const target::GpuModule& module) {
  const std::string bytes = record::EncodeArtifact({.shared_object = module.Encode()});
  std::string path = absl::StrCat(folder, "/", Sha256Of(bytes));
  EXPECT_THAT(WriteFileAtomically(path, bytes, Durability::kProcess), IsOk());
  return path;
}

}  // namespace hone::runner
