#include "common/base/deflate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

TEST(DeflateTest, WhatIsCompressedComesBack) {
  std::string bytes;
  for (int i = 0; i < 100000; ++i) bytes.push_back(static_cast<char>(i % 100));
  const std::string deflated = Deflate(bytes);
  EXPECT_LT(deflated.size(), bytes.size() / 10);
  HONE_ASSERT_OK_AND_ASSIGN(const std::string inflated, Inflate(deflated, bytes.size()));
  EXPECT_EQ(inflated, bytes);
  HONE_ASSERT_OK_AND_ASSIGN(const std::string empty, Inflate(Deflate(""), 0));
  EXPECT_EQ(empty, "");
}

TEST(DeflateTest, NoMoreThanTheLimitIsInflated) {
  const std::string bomb = Deflate(std::string(64 << 20, 'a'));
  EXPECT_LT(bomb.size(), size_t{1} << 20);
  EXPECT_THAT(Inflate(bomb, 1 << 10),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("more than 1024 bytes")));
  const std::string ten = Deflate("0123456789");
  EXPECT_THAT(Inflate(ten, 9), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Inflate(ten, 10), IsOk());
}

TEST(DeflateTest, DamagedBytesAreRefused) {
  std::string deflated = Deflate(std::string(1000, 'a') + "b");
  EXPECT_THAT(Inflate(deflated.substr(0, deflated.size() / 2), 2000),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Inflate("not compressed", 2000), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Inflate("", 2000), StatusIs(absl::StatusCode::kDataLoss));
  deflated.back() ^= 1;  // of the checksum
  EXPECT_THAT(Inflate(deflated, 2000), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace hone
