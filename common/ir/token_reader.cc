#include "common/ir/token_reader.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "common/base/status_macros.h"

namespace hone::ir {
namespace {

// Names are stored in columns of the database and become file names.
constexpr size_t kMaxNameBytes = 128;
constexpr size_t kMaxShownBytes = 64;

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
bool IsInName(char c) { return IsLetter(c) || IsDigit(c) || c == '.'; }

std::string Shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isprint(byte) ? std::string(1, c) : absl::StrCat("\\x", absl::Hex(byte));
}

bool AreJoined(const Token& token, const Token& next) {
  return next.line == token.line &&
         next.column == token.column + static_cast<int>(token.text.size());
}

// The end of an error about an operator of C: how to write it here.
std::string Instead(char c) {
  constexpr std::pair<char, absl::string_view> kForms[] = {
      {'&', "a and b"}, {'|', "a or b"}, {'!', "not(a)"}, {'?', "select(condition, a, b)"}};
  for (const auto& [symbol, form] : kForms) {
    if (symbol == c) return absl::StrCat("; write ", form);
  }
  return "";
}

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

constexpr ForeignComparison kForeignComparisons[] = {
    {">", "$1 < $0", "$1 < $0"},
    {">=", "$1 <= $0", "$1 <= $0"},
    {"=", "$0 == $1", "$0 == $1"},
    {"!=", "", "not($0 == $1)"},
};

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view text, int first_line) {
  std::vector<Token> tokens;
  int line = first_line;
  size_t line_begin = 0;
  size_t at = 0;
  const auto add = [&](Token::Kind kind, size_t begin, size_t end) {
    tokens.push_back({kind, std::string(text.substr(begin, end - begin)), line,
                      static_cast<int>(begin - line_begin) + 1});
  };
  while (at < text.size()) {
    const char c = text[at];
    const size_t begin = at;
    if (c == '\n') {
      const bool continues = at + 1 < text.size() && (text[at + 1] == ' ' || text[at + 1] == '\t');
      if (!continues) add(Token::kNewline, at, at);
      ++at;
      ++line;
      line_begin = at;
    } else if (c == '#') {
      while (at < text.size() && text[at] != '\n') ++at;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at;
    } else if (IsLetter(c)) {
      while (at < text.size() && IsInName(text[at])) ++at;
      add(Token::kName, begin, at);
    } else if (IsDigit(c)) {
      while (at < text.size() && ((IsInName(text[at]) && text[at] != '_') ||
                                  ((text[at] == '+' || text[at] == '-') && text[at - 1] == 'e'))) {
        ++at;
      }
      add(Token::kNumber, begin, at);
    } else {
      const absl::string_view two = text.substr(at, 2);
      constexpr std::pair<absl::string_view, absl::string_view> kForeign[] = {
          {"//", "a / b, which rounds indices down; a comment begins with #"}, {"**", "pow(a, b)"}};
      for (const auto& [symbol, form] : kForeign) {
        if (symbol != two) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            line, ":", begin - line_begin + 1, ": there is no '", symbol, "' here; write ", form));
      }
      // "=" and ">" stay tokens: the parser rejects them with a suggestion.
      constexpr absl::string_view kPairs[] = {"<=", "==", ">=", "!=", "<<", ">>"};
      at += absl::c_linear_search(kPairs, two) ? 2 : 1;
      if (absl::string_view("[](),:=<>+-*/%@").find(c) == absl::string_view::npos && two != "!=") {
        return absl::InvalidArgumentError(absl::StrCat(line, ":", begin - line_begin + 1,
                                                       ": unexpected character '", Shown(c), "'",
                                                       Instead(c)));
      }
      add(Token::kSymbol, begin, at);
    }
  }
  add(Token::kNewline, at, at);
  add(Token::kEnd, at, at);
  return tokens;
}

bool TokenReader::IsJoined(int ahead) const { return AreJoined(Peek(ahead), Peek(ahead + 1)); }

std::string TokenReader::Text(size_t begin, size_t end) const {
  std::string text;
  for (size_t i = begin; i < end; ++i) {
    const bool joined = i == begin || AreJoined(tokens_[i - 1], tokens_[i]);
    absl::StrAppend(&text, joined ? "" : " ", tokens_[i].text);
    if (text.size() > kMaxShownBytes) return "…";
  }
  return text;
}

absl::Status TokenReader::Error(const Token& token, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(token.line, ":", token.column, ": ", what));
}

absl::Status TokenReader::Unexpected(absl::string_view expected) const {
  const Token& token = Peek();
  const std::string found = token.kind == Token::kEnd       ? "the end of the text"
                            : token.kind == Token::kNewline ? "the end of the line"
                                                            : absl::StrCat("'", token.text, "'");
  return Error(token, absl::StrCat("expected ", expected, ", found ", found));
}

bool TokenReader::Accept(absl::string_view text) {
  if (Peek().kind == Token::kEnd || Peek().kind == Token::kNewline || Peek().text != text)
    return false;
  ++at_;
  return true;
}

absl::Status TokenReader::Expect(absl::string_view text) {
  return Accept(text) ? absl::OkStatus() : Unexpected(absl::StrCat("'", text, "'"));
}

absl::Status TokenReader::EndOfStatement() {
  if (Peek().kind != Token::kNewline) return Unexpected("the end of the line");
  ++at_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> TokenReader::Name(absl::string_view what) {
  if (Peek().kind != Token::kName) return Unexpected(what);
  if (Peek().text.size() > kMaxNameBytes) {
    return Error(Peek(),
                 absl::StrCat("a name of ", Peek().text.size(), " bytes; at most ", kMaxNameBytes));
  }
  return Next().text;
}

absl::StatusOr<int64_t> TokenReader::Integer(absl::string_view what) {
  const bool negative = Accept("-");
  int64_t value = 0;
  if (Peek().kind != Token::kNumber) return Unexpected(what);
  if (!absl::SimpleAtoi(Peek().text, &value)) {
    return Error(Peek(),
                 absl::StrCat("'", Peek().text, "' is not a whole number that fits in 64 bits"));
  }
  ++at_;
  return negative ? -value : value;
}

absl::StatusOr<int64_t> TokenReader::Extent(int64_t limit) {
  const Token token = Peek();
  HONE_ASSIGN_OR_RETURN(const int64_t extent, Integer("an extent"));
  if (extent >= 1 && extent <= limit) return extent;
  return Error(token, absl::StrCat("extent ", extent, " is not between 1 and ", limit));
}

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

const ForeignComparison* FindForeignComparison(const Token& token) {
  if (token.kind != Token::kSymbol) return nullptr;
  for (const ForeignComparison& comparison : kForeignComparisons) {
    if (comparison.symbol == token.text) return &comparison;
  }
  return nullptr;
}

absl::Status MisspelledComparison(const TokenReader& reader, const Token& symbol,
                                  absl::string_view pattern, size_t begin, size_t at) {
  const std::string left = reader.Text(begin, at), right = reader.Text(at + 1, reader.position());
  return TokenReader::Error(
      symbol, pattern.empty() ? absl::StrCat("a guard cannot exclude a single index; there is no '",
                                             symbol.text, "'")
                              : absl::StrCat("there is no '", symbol.text, "' here; write ",
                                             absl::Substitute(pattern, left, right)));
}

}  // namespace hone::ir
