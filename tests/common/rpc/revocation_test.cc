#include "common/rpc/revocation.h"

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::rpc {
namespace {

using ::testing::HasSubstr;

TEST(SerialTest, EveryUsualFormIsRead) {
  for (const std::string text : {"5c9a1f", "5C9A1F", "5C:9A:1F", "005c9a1f"}) {
    EXPECT_EQ(ParseSerial(text).value_or(""), "5c9a1f") << text;
  }
  const std::string longest(40, 'a');
  EXPECT_EQ(ParseSerial(longest).value_or(""), longest);
  for (const std::string& bad : {std::string(), std::string("0"), std::string(":"),
                                 std::string("pi-07"), std::string("0x5c"), longest + "a"}) {
    EXPECT_THAT(ParseSerial(bad), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

TEST(RevocationListTest, HasOneSerialPerLine) {
  HONE_ASSERT_OK_AND_ASSIGN(const RevocationList list,
                            RevocationList::Parse("# lost boards\n\n5C:9A  # pi-07\r\n77\n"));
  EXPECT_TRUE(list.Contains("5c9a"));
  EXPECT_TRUE(list.Contains("77"));
  EXPECT_FALSE(list.Contains("78"));
  EXPECT_FALSE(list.IsEmpty());
  HONE_ASSERT_OK_AND_ASSIGN(const RevocationList none, RevocationList::Parse("# nothing yet\n"));
  EXPECT_TRUE(none.IsEmpty());
}

TEST(RevocationListTest, AMalformedLineIsNamed) {
  EXPECT_THAT(RevocationList::Parse("77\n\npi-07\n").status().message(),
              HasSubstr("line 3: 'pi-07' is not the serial number of a certificate"));
  EXPECT_THAT(RevocationList::Parse("77 78\n").status().message(),
              HasSubstr("line 1: more than one word"));
}

TEST(IssuedTest, LinesAreAppendedAndReadAgain) {
  const TemporaryFolder folder;
  const std::string path = folder / "issued";
  const IssuedCertificate first{"5c9a", {"pi-07", Role::kWorker}}, second{"77", {"ann"}};
  ASSERT_THAT(AppendToFile(path, IssuedLine(first, absl::UnixEpoch())), IsOk());
  ASSERT_THAT(AppendToFile(path, IssuedLine(second, absl::UnixEpoch())), IsOk());
  EXPECT_EQ(ReadFile(path).value(), "5c9a worker pi-07 1970-01-01\n77 client ann 1970-01-01\n");
  HONE_ASSERT_OK_AND_ASSIGN(const auto all, ParseIssued(ReadFile(path).value()));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].serial, "5c9a");
  EXPECT_EQ(all[0].identity, first.identity);
  EXPECT_EQ(all[1].identity, second.identity);
  EXPECT_THAT(AppendToFile(folder / "none/issued", "x"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(IssuedTest, AMalformedLineIsNamed) {
  EXPECT_THAT(ParseIssued("# x\n5c9a worker pi-07\n").status().message(),
              HasSubstr("line 2: not four words"));
  EXPECT_THAT(ParseIssued("5c9a boss pi-07 2026-01-01").status().message(),
              HasSubstr("line 1: unknown role 'boss'"));
}

}  // namespace
}  // namespace hone::rpc
