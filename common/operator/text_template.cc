#include "common/operator/text_template.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hone::op {
namespace {

void Require(bool holds, absl::string_view what, absl::string_view text) {
  if (holds) return;
  absl::FPrintF(stderr, "template: %s: %s\n", what, text);
  std::abort();
}

struct Number {
  double value = 0;
  bool real = false;  // "/" does not round it
};

Number Apply(absl::string_view op, Number a, Number b) {
  const bool real = a.real || b.real;
  const double quotient = a.value / b.value, floor = std::floor(quotient);
  if (op == "+") return {a.value + b.value, real};
  if (op == "-") return {a.value - b.value, real};
  if (op == "*") return {a.value * b.value, real};
  if (op == "/") return {real ? quotient : floor, real};
  if (op == "%") return {a.value - floor * b.value, real};
  return {static_cast<double>(op == "<="  ? a.value <= b.value
                              : op == "<" ? a.value < b.value
                                          : a.value == b.value)};
}

class Evaluator {
 public:
  Evaluator(absl::string_view text, const Definitions& definitions)
      : text_(text), definitions_(definitions) {}

  Number Whole() {
    const Number number = Operation(0);
    Require(text_.empty(), "unexpected", text_);
    return number;
  }

 private:
  bool Accept(absl::string_view symbol) {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    return absl::ConsumePrefix(&text_, symbol);
  }

  Number Operation(size_t level) {
    static constexpr const char* kOperators[][3] = {{"<=", "<", "=="}, {"+", "-"}, {"*", "/", "%"}};
    if (level == std::size(kOperators)) return Operand();
    Number left = Operation(level + 1);
    while (true) {
      const auto op = absl::c_find_if(kOperators[level],
                                      [&](const char* o) { return o != nullptr && Accept(o); });
      if (op == std::end(kOperators[level])) return left;
      left = Apply(*op, left, Operation(level + 1));
    }
  }

  Number Operand() {
    if (Accept("(")) {
      const Number inner = Operation(0);
      Require(Accept(")"), "expected ')'", text_);
      return inner;
    }
    const auto end = absl::c_find_if_not(
        text_, [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; });
    const absl::string_view word = text_.substr(0, static_cast<size_t>(end - text_.begin()));
    text_.remove_prefix(word.size());
    if (word == "sqrt") return {std::sqrt(Operand().value), /*real=*/true};
    const auto known = definitions_.find(word);
    const std::string digits =
        known == definitions_.end() ? std::string(word) : Expand(known->second.text, definitions_);
    Number number{.real = absl::StrContains(digits, '.')};
    Require(absl::SimpleAtod(digits, &number.value), "not a number", word);
    return number;
  }

  absl::string_view text_;
  const Definitions& definitions_;
};

// Returns the position of the first occurrence that is not inside inner braces.
size_t FindOutside(absl::string_view text, absl::string_view what) {
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (depth == 0 && absl::StartsWith(text.substr(at), what)) return at;
    depth += (text[at] == '{') - (text[at] == '}');
  }
  return absl::string_view::npos;
}

// Expands what stands between two braces.
std::string ExpandPart(absl::string_view part, const Definitions& definitions) {
  if (const size_t question = FindOutside(part, " ? "); question != part.npos) {
    const bool wanted = Evaluate(part.substr(0, question), definitions) != 0;
    return wanted ? Expand(part.substr(question + 3), definitions) : "";
  }
  const size_t open = part.find('(');
  const auto known = definitions.find(part.substr(0, open));
  if (known == definitions.end()) {
    const Number number = Evaluator(part, definitions).Whole();
    return absl::StrFormat(number.real ? "%.17g" : "%.0f", number.value);
  }
  if (open == part.npos) return Expand(known->second.text, definitions);
  const std::vector<std::string> arguments =
      absl::StrSplit(part.substr(open + 1, part.size() - open - 2), ", ");
  Require(arguments.size() == known->second.parameters.size(), "wrong number of arguments", part);
  Definitions inner = definitions;
  for (size_t i = 0; i < arguments.size(); ++i)
    inner[known->second.parameters[i]] = {Expand(arguments[i], definitions)};
  return Expand(known->second.text, inner);
}

}  // namespace

void Define(absl::string_view definition, Definitions& definitions) {
  const std::vector<std::string> sides = absl::StrSplit(definition, absl::MaxSplits(" = ", 1));
  Require(sides.size() == 2, "expected a definition", definition);
  const std::vector<std::string> head = absl::StrSplit(sides[0], absl::ByAnyChar("()"));
  Definition& added = definitions[head[0]] = {sides[1]};
  if (head.size() > 1) added.parameters = absl::StrSplit(head[1], ", ");
}

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
    const std::string part = ExpandPart(text.substr(0, close), definitions);
    text.remove_prefix(close + 1);
    result += part;
    // A separator is dropped with an item that is left out.
    if (!part.empty() || absl::ConsumePrefix(&text, ", ")) continue;
    const absl::string_view before = absl::StripSuffix(result, ", ");
    result.resize(
        (before.size() < result.size() ? before : absl::StripSuffix(result, " where ")).size());
  }
  absl::StrAppend(&result, text);
  return result;
}

}  // namespace hone::op
