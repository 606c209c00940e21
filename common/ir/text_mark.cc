#include "common/ir/text_mark.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hone::ir {
namespace {

// Whether a byte of UTF-8 continues a character.
bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes shown on either side of the column.
constexpr int64_t kAround = 60;

// Consumes "123:" at the front of the text; returns -1 if it is not there.
int64_t TakeNumber(absl::string_view& text) {
  int64_t number = 0;
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, colon), &number))
    return -1;
  text.remove_prefix(colon + 1);
  return number;
}

}  // namespace

absl::Status MarkText(const absl::Status& status, absl::string_view text, int first_line) {
  if (status.ok()) return status;
  absl::string_view message = status.message();
  const int64_t line_number = TakeNumber(message);
  const int64_t column = TakeNumber(message);
  if (line_number < first_line || column < 1) return status;
  for (int64_t skipped = first_line; skipped < line_number; ++skipped) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) return status;
    text.remove_prefix(end + 1);
  }
  const absl::string_view line = text.substr(0, text.find('\n'));
  const auto size = static_cast<int64_t>(line.size());
  const int64_t at = std::min(column - 1, size);
  int64_t begin = std::max<int64_t>(0, at - kAround), end = std::min(size, at + kAround);
  while (begin < at && Continues(line[begin])) ++begin;
  while (end > at && end < size && Continues(line[end])) --end;
  std::string shown(line.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  for (char& c : shown) {
    if (c == '\t' || c == '\r') c = ' ';
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  const auto before = shown.begin() + (at - begin);
  const auto characters = (at - begin) - std::count_if(shown.begin(), before, Continues);
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "\n  ", shown, "\n  ",
                                   std::string(static_cast<size_t>(characters), ' '), "^"));
}

}  // namespace hone::ir
