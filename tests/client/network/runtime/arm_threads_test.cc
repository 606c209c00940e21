// Kernels for ARM with Hone's threads, as exports link them for Python: a program calls the shared
// object under emulation.

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "client/network/export/kernel_object.h"
#include "client/network/export/network_header.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::network {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kParallelSum[] = R"(workload sums
input A: f32[64, 40]
output B[i: 64] = sum(k: 40) A[i, k] * 2.0
trace 1
b0 = block("B")
l0, l1 = loops(b0)
parallel(l0)
)";

constexpr char kCaller[] = R"(#include <stdio.h>
#include "common/target/hone_runtime.h"
int32_t k_threads(void);
int32_t k_run(void* const* buffers, const void* packed, void* workspace, const HoneRuntime* runtime);
HoneRuntime k_pool(int32_t threads);
static _Alignas(64) float a[64][40], b[64], space[4096];
int main(void) {
  for (int i = 0; i < 64; ++i)
    for (int k = 0; k < 40; ++k) a[i][k] = (float)i;
  void* buffers[] = {a, b};
  const HoneRuntime runtime = k_pool(3);
  if (runtime.threads != 3 || k_threads() < 3) return 2;
  if (k_run(buffers, 0, space, &runtime) != 0) return 3;
  for (int i = 0; i < 64; ++i)
    if (b[i] != 80 * (float)i) return 4;
  puts("right");
  return 0;
}
)";

struct Machine {
  const char *arch, *preset, *elf, *compiler, *emulator, *libraries;
};

class ArmThreads : public testing::TestWithParam<Machine> {};

TEST_P(ArmThreads, LinkWithAKernel) {
  const Machine& machine = GetParam();
  const std::string pool = ThreadsObject(machine.arch);
  if (pool.empty()) GTEST_SKIP() << "built without a compiler for " << machine.arch;
  for (const char* program : {machine.compiler, machine.emulator}) {
    if (access(program, X_OK) != 0) GTEST_SKIP() << program << " is missing";
  }
  const target::Target target = codegen::Preset(machine.preset);
  HONE_ASSERT_OK_AND_ASSIGN(const auto program, codegen::ReplayText(kParallelSum));
  HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(program, target));
  HONE_ASSERT_OK_AND_ASSIGN(const auto code, codegen::Generate(lowered, target));
  HONE_ASSERT_OK_AND_ASSIGN(const auto kernel, client::RenameFunctions(code.bytes, "k"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto threads,
                            client::RenameSymbols(pool, "hone_threads", "k_pool"));
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& content) {
    EXPECT_THAT(WriteFileAtomically(folder / name, content, Durability::kProcess), IsOk());
    return folder / name;
  };
  const integration::Result linked =
      integration::RunProgram({"hone-builder", "link", "--visible", "k_", write("k.o", kernel),
                               write("threads.o", threads)});
  ASSERT_EQ(linked.code, 0) << linked.errors;
  const std::string library = write("libk.so", linked.output);
  EXPECT_THAT(integration::RunProgram({"/usr/bin/readelf", "-h", "-d", library}).output,
              AllOf(HasSubstr(machine.elf), Not(HasSubstr("x86"))));
  const integration::Result compiled =
      integration::RunProgram({machine.compiler, "-std=c11", "-I.", "-o", folder / "caller",
                               write("caller.c", kCaller), library});
  ASSERT_EQ(compiled.code, 0) << compiled.errors;
  const integration::Result called =
      integration::RunProgram({machine.emulator, "-L", machine.libraries, folder / "caller"});
  EXPECT_EQ(called.output, "right\n") << called.code << called.errors;
}

INSTANTIATE_TEST_SUITE_P(Machines, ArmThreads,
                         testing::Values(Machine{"aarch64", "arm/cortex-a76", "AArch64",
                                                 "/usr/bin/aarch64-linux-gnu-gcc",
                                                 "/usr/bin/qemu-aarch64", "/usr/aarch64-linux-gnu"},
                                         Machine{"armv7", "arm/cortex-a7", "ARM",
                                                 "/usr/bin/arm-linux-gnueabihf-gcc",
                                                 "/usr/bin/qemu-arm", "/usr/arm-linux-gnueabihf"}),
                         [](const auto& info) { return std::string(info.param.arch); });

}  // namespace
}  // namespace hone::network
