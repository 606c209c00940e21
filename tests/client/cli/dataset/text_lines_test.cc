#include "client/cli/dataset/text_lines.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

using ::testing::ElementsAre;

class TextLinesTest : public ::testing::Test {
 protected:
  std::vector<std::string> seen_;
  TextLines lines_{
      8, [this](const TextLine& line) {
        seen_.push_back(absl::StrCat(line.number, line.is_too_long ? " long" : ":", line.text));
        return absl::OkStatus();
      }};
};

TEST_F(TextLinesTest, LinesMayEndInAnyPiece) {
  for (const char* piece : {"a", "b\nc", "", "\n\nd"}) ASSERT_THAT(lines_.Feed(piece), IsOk());
  ASSERT_THAT(lines_.Finish(), IsOk());
  EXPECT_THAT(seen_, ElementsAre("1:ab", "2:c", "3:", "4:d"));
}

TEST_F(TextLinesTest, ALineOfOneGibibyteIsNotStored) {
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 1024; ++i) ASSERT_THAT(lines_.Feed(piece), IsOk());
  ASSERT_THAT(lines_.Feed("\n12345678\n123456789"), IsOk());
  ASSERT_THAT(lines_.Finish(), IsOk());
  EXPECT_THAT(seen_, ElementsAre("1 long", "2:12345678", "3 long"));
}

TEST_F(TextLinesTest, AnErrorOfTheSinkEndsTheReading) {
  TextLines lines(8, [](const TextLine&) { return absl::InternalError("full"); });
  EXPECT_THAT(lines.Feed("a\nb\n"), StatusIs(absl::StatusCode::kInternal));
}

TEST(ReadTextLinesTest, AMissingFileIsAnError) {
  EXPECT_THAT(ReadTextLines("/no/such/file", 8, [](const TextLine&) { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace hone::cli
