#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "common/target/kernel_abi.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

// Memory whose end is the end of a page, with a page behind it that cannot be read.
class EndOfPage {
 public:
  explicit EndOfPage(size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_EQ(mprotect(static_cast<char*>(memory_) + kPage, kPage, PROT_NONE), 0);
  }
  ~EndOfPage() { munmap(memory_, 2 * kPage); }
  EndOfPage(const EndOfPage&) = delete;
  EndOfPage& operator=(const EndOfPage&) = delete;

  float* data() { return reinterpret_cast<float*>(static_cast<char*>(memory_) + kPage - bytes_); }

 private:
  static constexpr size_t kPage = 1 << 16;
  size_t bytes_;
  void* memory_;
};

// The element of the last row, 128 columns of which are read under a condition. The condition mixes
// the loops inside and outside of the loop over c, so the load must not move before that loop.
TEST(GatherTest, IsNotReadBeforeItsGuardIsChecked) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto program,
      ReplayText(
          "workload guarded\ninput T: f32[100, 8]\ninput I: i32[4] < 100\ninput X: f32[64]\n"
          "output Y[i: 4, c: 64, j: 128] = (T[at(I[i]), j / 8] * X[c] where j / 8 < 8 else 0.0)\n"
          "trace 1\nb = block(\"Y\")\ni, c, j = loops(b)\nj0, j1 = split(j, 0, 5)\n"
          "reorder(i, j0, c, j1)\nunroll(j1)\n"));
  for (const target::Target& target : RunnableTargets()) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto kernel, CompiledProgram::Load(program, target));
    EndOfPage table(100 * 8 * sizeof(float));
    std::fill_n(table.data(), 800, 3.0F);
    alignas(64) static int32_t rows[16] = {99, 99, 0, 99};
    alignas(64) static float x[64];
    std::fill_n(x, 64, 2.0F);
    alignas(64) static float y[4 * 64 * 128];
    void* const buffers[] = {table.data(), rows, x, y};
    const auto run = reinterpret_cast<target::RunFunction>(kernel->Symbol(target::kRunSymbol));
    ASSERT_EQ(run(buffers, nullptr, nullptr, nullptr), target::kKernelOk);
    for (int at = 0; at < 4 * 64 * 128; ++at) {
      ASSERT_EQ(y[at], at % 128 < 64 ? 6.0F : 0.0F) << at;
    }
  }
}

}  // namespace
}  // namespace hone::codegen
