#include "common/base/terminal.h"

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(TerminalColumnsTest, TheVariableWinsOverTheSizeOfATerminal) {
  int primary = -1, terminal = -1;
  const winsize size = {.ws_row = 24, .ws_col = 60};
  ASSERT_EQ(openpty(&primary, &terminal, nullptr, nullptr, &size), 0);
  const int file = open("/dev/null", O_WRONLY);
  unsetenv("COLUMNS");
  EXPECT_EQ(TerminalColumns(terminal), 60);
  EXPECT_EQ(TerminalColumns(file), kUnlimitedColumns);
  for (const char* wrong : {"", "0", "-40", "wide"}) {
    setenv("COLUMNS", wrong, 1);
    EXPECT_EQ(TerminalColumns(terminal), 60) << wrong;
  }
  setenv("COLUMNS", "40", 1);
  EXPECT_EQ(TerminalColumns(terminal), 40);
  EXPECT_EQ(TerminalColumns(file), kUnlimitedColumns) << "programs read files and pipes";
  unsetenv("COLUMNS");
  for (const int fd : {primary, terminal, file}) close(fd);
}

}  // namespace
}  // namespace hone
