#include "worker/runner/tensor_memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "common/target/kernel_abi.h"
#include "tests/status.h"

namespace hone::runner {
namespace {

TEST(TensorMemoryTest, TheDataIsAtTheRequestedOffset) {
  for (const int64_t bytes : {0, 1, 1000, 5 << 20}) {
    for (const uint64_t offset : {0u, 63u, 64u, 4095u, 123456u}) {
      HONE_ASSERT_OK_AND_ASSIGN(const auto memory, TensorMemory::Create(bytes, offset));
      const auto address = reinterpret_cast<uintptr_t>(memory->data());
      EXPECT_EQ(address % target::kBufferAlignment, 0u);
      EXPECT_EQ(address % 4096, offset % 4096 / 64 * 64);
      EXPECT_EQ(memory->bytes(), static_cast<size_t>(bytes));
    }
  }
}

TEST(TensorMemoryTest, PoisonIsNaN) {
  const auto memory = TensorMemory::Create(64, 0).value();
  memory->Poison();
  float value;
  std::memcpy(&value, memory->data(), sizeof value);
  EXPECT_TRUE(std::isnan(value));
}

TEST(TensorMemoryTest, DetectsAndRepairsOutOfBoundsWrites) {
  const auto memory = TensorMemory::Create(1000, 128).value();
  char* const data = static_cast<char*>(memory->data());
  std::memset(data, 1, 1000);
  EXPECT_FALSE(memory->WrittenOutside());
  data[1000] = 0;
  EXPECT_EQ(memory->WrittenOutside(), 1000);
  EXPECT_FALSE(memory->WrittenOutside());
  data[-4] = 0;
  EXPECT_EQ(memory->WrittenOutside(), -4);
  data[1000 + kCanaryBytes - 1] = 0;
  EXPECT_EQ(memory->WrittenOutside(), 1000 + kCanaryBytes - 1);
}

TEST(TensorMemoryTest, TheCanaryFollowsTheSize) {
  const auto memory = TensorMemory::Create(1000, 0).value();
  char* const data = static_cast<char*>(memory->data());
  memory->Resize(64);
  EXPECT_EQ(memory->bytes(), 64u);
  EXPECT_EQ(memory->capacity(), 1000u);
  EXPECT_FALSE(memory->WrittenOutside());
  data[64] = 0;
  EXPECT_EQ(memory->WrittenOutside(), 64);
  memory->Resize(1000);
  std::memset(data, 1, 1000);
  EXPECT_FALSE(memory->WrittenOutside());
}

TEST(TensorMemoryTest, RejectsInvalidSizes) {
  EXPECT_THAT(TensorMemory::Create(int64_t{1} << 60, 0),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(TensorMemory::Create(-1, 0), StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace hone::runner
