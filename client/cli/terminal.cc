#include "client/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace hone::cli {
namespace {

constexpr int kUsualColumns = 80;  // for a terminal that does not report its size

bool IsOfNumber(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.'; }

bool BeginsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

int TerminalColumns(int fd) {
  if (isatty(fd) != 1) return kUnlimitedColumns;
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

int ColumnsOf(absl::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), BeginsCodePoint));
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

void PrintWrapped(absl::string_view text, absl::string_view indent) {
  PrintWrapped(stdout, text, indent);
}

void PrintWrapped(std::FILE* file, absl::string_view text, absl::string_view indent) {
  absl::FPrintF(file, "%s\n", Wrapped(text, TerminalColumns(fileno(file)), indent));
}

std::string Shortened(absl::string_view text, int columns) {
  if (ColumnsOf(text) <= columns) return std::string(text);
  size_t end = 0;
  for (int used = 0; end < text.size(); ++end) {
    if (BeginsCodePoint(text[end]) && used++ == columns) break;
  }
  const size_t blank = text.rfind(' ', end);
  if (blank != absl::string_view::npos && blank > 0) end = blank;
  if (IsOfNumber(text[end])) {
    while (end > 0 && IsOfNumber(text[end - 1])) --end;
  }
  return std::string(text.substr(0, end));
}

}  // namespace hone::cli
