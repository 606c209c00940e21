#include "common/base/sha256.h"

#include "gtest/gtest.h"

namespace hone {
namespace {

// The examples of FIPS 180-4 and its test vectors.
TEST(Sha256Test, HasTheStandardValues) {
  EXPECT_EQ(Sha256Of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, OnlyItsOwnFormIsRead) {
  EXPECT_TRUE(IsSha256(Sha256Of("abc")));
  EXPECT_FALSE(IsSha256(""));
  EXPECT_FALSE(IsSha256(std::string(32, 'a')));
  EXPECT_FALSE(IsSha256(std::string(64, 'A')));
  EXPECT_FALSE(IsSha256(std::string(63, 'a') + "/"));
}

}  // namespace
}  // namespace hone
