#ifndef HONE_COMMON_IR_TOKEN_READER_H_
#define HONE_COMMON_IR_TOKEN_READER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::ir {

// A token of the text forms of workloads and programs, with its position for messages.
struct Token {
  enum Kind { kName, kNumber, kSymbol, kNewline, kEnd } kind = kEnd;
  std::string text;
  int line = 1;    // from 1
  int column = 1;  // from 1, in bytes
};

// Splits a text into names, numbers, symbols and newlines; '#' starts a comment. A newline ends a
// statement unless the next line begins with a space. The result ends with a newline and kEnd.
// `first_line` is the number of the text's first line. InvalidArgument: "line:column: unexpected
// character".
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view text, int first_line = 1);

// Reads tokens in order. Every error is InvalidArgument and begins with "line:column: ".
class TokenReader {
 public:
  // REQUIRES the result of Tokenize.
  explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Peek(int ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  // Does not advance past the end.
  const Token& Next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  void SkipNewlines() {
    while (Peek().kind == Token::kNewline) ++at_;
  }
  // Whether there is no space between this token and the next, as in "max(".
  bool IsJoined(int ahead = 0) const;

  // The number of tokens before the next one, and the text of the tokens from one such position to
  // another, for messages ("…" if it is long).
  size_t position() const { return at_; }
  std::string Text(size_t begin, size_t end) const;

  // Consumes the next token if it is a name or symbol with this text.
  bool Accept(absl::string_view text);
  absl::Status Expect(absl::string_view text);
  absl::Status EndOfStatement();
  // `what` describes the expected token in the message.
  absl::StatusOr<std::string> Name(absl::string_view what);
  absl::StatusOr<int64_t> Integer(absl::string_view what);
  // Parses an integer from 1 to `limit`.
  absl::StatusOr<int64_t> Extent(int64_t limit);

  static absl::Status Error(const Token& token, absl::string_view what);
  absl::Status Unexpected(absl::string_view expected) const;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

// Appends the offending line to an error of the form "line:column: what" and marks the column:
//
//   3:22: a product of two axes is not affine
//     output B[i: 4] = A[i * i]
//                          ^
//
// Long lines are cut around the column. `first_line` is the number of the text's first line. OK and
// errors of another form are returned unchanged.
absl::Status MarkText(const absl::Status& status, absl::string_view text, int first_line = 1);

// A comparison operator that the text forms lack, such as ">", and how to write it instead.
struct ForeignComparison {
  absl::string_view symbol;
  absl::string_view guard;  // for indices $0 and $1; "" if no guard is equivalent
  absl::string_view value;  // for values $0 and $1
};

// Null if the token is not such an operator.
const ForeignComparison* FindForeignComparison(const Token& token);

// The error for such a comparison. Its left side begins at the position `begin`, its symbol is at
// `at`, and its right side was read last. `pattern` says how it is written here.
absl::Status MisspelledComparison(const TokenReader& reader, const Token& symbol,
                                  absl::string_view pattern, size_t begin, size_t at);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_TOKEN_READER_H_
