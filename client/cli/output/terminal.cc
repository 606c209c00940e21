#include "client/cli/output/terminal.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace hone::cli {
namespace {

bool IsOfNumber(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.'; }

bool BeginsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

void PrintWrapped(absl::string_view text, absl::string_view indent) {
  PrintWrapped(stdout, text, indent);
}

void PrintWrapped(std::FILE* file, absl::string_view text, absl::string_view indent) {
  if (file == stderr) std::fflush(stdout);
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
