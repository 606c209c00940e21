#include "common/ir/foreign_comparison.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"

namespace hone::ir {
namespace {

constexpr ForeignComparison kForeignComparisons[] = {
    {">", "$1 < $0", "$1 < $0"},
    {">=", "$1 <= $0", "$1 <= $0"},
    {"=", "$0 == $1", "$0 == $1"},
    {"!=", "", "not($0 == $1)"},
};

}  // namespace

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
