#include "client/cli/suggested_command.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

TEST(ShellWordTest, IsQuotedIfAShellWouldChangeIt) {
  EXPECT_EQ(ShellWord("m=512"), "m=512");
  EXPECT_EQ(ShellWord("größe/mine.hone"), "größe/mine.hone");
  EXPECT_EQ(ShellWord("ü d/größe ß.hone"), "'ü d/größe ß.hone'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("$HOME/*.hone"), "'$HOME/*.hone'");
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace hone::cli
