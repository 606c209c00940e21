#include "common/target/device_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hone::target {
namespace {

constexpr size_t kMaxWord = 64;
constexpr size_t kMaxName = 128;

}  // namespace

std::string TargetWord(absl::string_view name) {
  std::string word;
  for (const char c : name.substr(0, name.find('\0'))) {
    const bool keeps = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.';
    if (keeps) {
      word.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty() && word.back() != '-') {
      word.push_back('-');
    }
    if (word.size() == kMaxWord) break;
  }
  while (!word.empty() && word.back() == '-') word.pop_back();
  return word.empty() ? "unknown" : word;
}

std::string Printable(absl::string_view text, size_t most, bool lines) {
  std::string printable(text.substr(0, std::min(most, text.find('\0'))));
  for (char& c : printable) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c)) && !(lines && c == '\n')) c = '?';
  }
  return std::string(absl::StripAsciiWhitespace(printable));
}

absl::StatusOr<uint32_t> DeviceNumberOf(absl::string_view kind, absl::string_view name) {
  absl::string_view rest = name;
  uint32_t number = 0;
  if (name == kind) return number;
  if (absl::ConsumePrefix(&rest, kind) && absl::ConsumePrefix(&rest, ":") && !rest.empty() &&
      std::ranges::all_of(rest, absl::ascii_isdigit) && absl::SimpleAtoi(rest, &number)) {
    return number;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", Printable(name, kMaxName), "' is not the name of a device: ", kind, " or ", kind, ":N"));
}

}  // namespace hone::target
