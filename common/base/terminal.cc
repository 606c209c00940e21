#include "common/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hone {
namespace {

constexpr int kUsualColumns = 80;  // for a terminal that does not report its size

}  // namespace

int TerminalColumns(int fd) {
  if (isatty(fd) != 1) return kUnlimitedColumns;
  const char* const given = std::getenv("COLUMNS");
  int columns = 0;
  if (given != nullptr && absl::SimpleAtoi(given, &columns) && columns > 0) return columns;
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

int ColumnsOf(absl::string_view text) {
  return static_cast<int>(absl::c_count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string Wrapped(absl::string_view text, int columns, absl::string_view indent) {
  if (ColumnsOf(text) <= columns) return std::string(text);
  std::string lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.data() != text.data()) lines += '\n';
    int used = -1;  // columns of the last line; -1: it has no word yet
    for (const absl::string_view word : absl::StrSplit(line, ' ')) {
      if (used > 0 && used + 1 + ColumnsOf(word) > columns) {
        absl::StrAppend(&lines, "\n", indent, word);
        used = ColumnsOf(indent) + ColumnsOf(word);
      } else {
        absl::StrAppend(&lines, used < 0 ? "" : " ", word);
        used += 1 + ColumnsOf(word);
      }
    }
  }
  return lines;
}

}  // namespace hone
