#include "common/operator/text_template.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace hone::op {
namespace {

// Templates are a part of the program, so a malformed one is a bug.
void Require(bool holds, absl::string_view what, absl::string_view text) {
  if (holds) return;
  std::fprintf(stderr, "template: %.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(text.size()), text.data());
  std::abort();
}

struct Number {
  double value = 0;
  bool real = false;  // not rounded by "/"
};

class Evaluator {
 public:
  Evaluator(absl::string_view text, const Definitions& definitions)
      : text_(text), definitions_(definitions) {}

  Number Whole() {
    const Number number = Comparison();
    Require(text_.empty(), "unexpected", text_);
    return number;
  }

 private:
  // Returns the first of the operators that follows, or "".
  absl::string_view Accept(std::initializer_list<absl::string_view> operators) {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    for (const absl::string_view op : operators) {
      if (absl::ConsumePrefix(&text_, op)) return op;
    }
    return "";
  }

  Number Comparison() {
    Number left = Sum();
    while (true) {
      const absl::string_view op = Accept({"<=", "<", "=="});
      if (op.empty()) return left;
      const double a = left.value, b = Sum().value;
      left = {(op == "<=" ? a <= b : op == "<" ? a < b : a == b) ? 1.0 : 0.0};
    }
  }

  Number Sum() {
    Number left = Product();
    while (true) {
      const absl::string_view op = Accept({"+", "-"});
      if (op.empty()) return left;
      const Number right = Product();
      left = {op == "+" ? left.value + right.value : left.value - right.value,
              left.real || right.real};
    }
  }

  Number Product() {
    Number left = Primary();
    while (true) {
      const absl::string_view op = Accept({"*", "/", "%"});
      if (op.empty()) return left;
      const Number right = Primary();
      const bool real = left.real || right.real;
      const double quotient = left.value / right.value, floor = std::floor(quotient);
      left = {op == "*"   ? left.value * right.value
              : op == "%" ? left.value - floor * right.value
              : real      ? quotient
                          : floor,
              real};
    }
  }

  Number Primary() {
    if (!Accept({"("}).empty()) {
      const Number inner = Comparison();
      Require(!Accept({")"}).empty(), "expected ')'", text_);
      return inner;
    }
    const auto end = std::find_if_not(text_.begin(), text_.end(), [](unsigned char c) {
      return absl::ascii_isalnum(c) || c == '_' || c == '.';
    });
    const absl::string_view word = text_.substr(0, static_cast<size_t>(end - text_.begin()));
    text_.remove_prefix(word.size());
    if (word == "sqrt") return {std::sqrt(Primary().value), true};
    const auto definition = definitions_.find(word);
    const std::string digits = definition == definitions_.end()
                                   ? std::string(word)
                                   : Expand(definition->second, definitions_);
    Number number{.real = absl::StrContains(digits, '.')};
    Require(absl::SimpleAtod(digits, &number.value), "not a number", word);
    return number;
  }

  absl::string_view text_;
  const Definitions& definitions_;
};

// Returns the position of a character or word of a part that is not inside inner braces.
size_t FindOutside(absl::string_view text, absl::string_view what) {
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (depth == 0 && absl::StartsWith(text.substr(at), what)) return at;
    depth += (text[at] == '{') - (text[at] == '}');
  }
  return absl::string_view::npos;
}

}  // namespace

double Evaluate(absl::string_view expression, const Definitions& definitions) {
  return Evaluator(expression, definitions).Whole().value;
}

std::string Expand(absl::string_view text, const Definitions& definitions) {
  std::string result;
  for (size_t open = text.find('{'); open != text.npos; open = text.find('{')) {
    absl::StrAppend(&result, text.substr(0, open));
    text.remove_prefix(open + 1);
    const size_t close = FindOutside(text, "}");
    Require(close != text.npos, "expected '}'", text);
    const absl::string_view part = text.substr(0, close);
    text.remove_prefix(close + 1);
    std::string expanded;
    if (const size_t question = FindOutside(part, " ? "); question != part.npos) {
      if (Evaluate(part.substr(0, question), definitions) != 0)
        expanded = Expand(part.substr(question + 3), definitions);
    } else if (const auto known = definitions.find(part); known != definitions.end()) {
      expanded = Expand(known->second, definitions);
    } else {
      const Number number = Evaluator(part, definitions).Whole();
      expanded = absl::StrFormat(number.real ? "%.17g" : "%.0f", number.value);
    }
    // A separator is dropped with an item that is left out.
    if (expanded.empty() && !absl::ConsumePrefix(&text, ", ")) {
      for (const absl::string_view separator : {", ", " where "}) {
        if (!absl::EndsWith(result, separator)) continue;
        result.resize(result.size() - separator.size());
        break;
      }
    }
    result += expanded;
  }
  absl::StrAppend(&result, text);
  return result;
}

}  // namespace hone::op
