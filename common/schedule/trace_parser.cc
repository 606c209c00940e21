#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/ir/token_reader.h"
#include "common/ir/workload_parser.h"
#include "common/schedule/trace.h"

namespace hone::schedule {
namespace {

constexpr int kMaxInstructions = 4096;

bool Fits(Argument::Kind argument, Operand::Kind operand) {
  switch (argument) {
    case Argument::Kind::kBlock:
      return operand == Operand::Kind::kBlock;
    case Argument::Kind::kLoop:
      return operand == Operand::Kind::kLoop;
    case Argument::Kind::kBlockOrLoop:
      return operand == Operand::Kind::kBlock || operand == Operand::Kind::kLoop;
    case Argument::Kind::kString:
      return operand == Operand::Kind::kString;
    case Argument::Kind::kNumber:
      return operand == Operand::Kind::kInt || operand == Operand::Kind::kNumber;
    case Argument::Kind::kNamed:
    case Argument::Kind::kNamedList:
      break;
  }
  return false;
}

absl::string_view KindText(Operand::Kind kind) {
  switch (kind) {
    case Operand::Kind::kBlock:
      return "a block";
    case Operand::Kind::kLoop:
      return "a loop";
    case Operand::Kind::kString:
      return "a string";
    case Operand::Kind::kInt:
    case Operand::Kind::kNumber:
      break;
  }
  return "a number";
}

std::string FormOf(const Primitive& primitive) {
  return absl::StrCat("; the form is ", primitive.Usage());
}

class LineParser {
 public:
  LineParser(absl::string_view line, int number) : line_(line), number_(number) {}

  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(number_, ":", at_ + 1, ": ", what));
  }
  void SkipBlanks() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r'))
      ++at_;
  }
  bool AtEnd() {
    SkipBlanks();
    return at_ == line_.size() || line_[at_] == '#';
  }
  bool Accept(char c) {
    SkipBlanks();
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  absl::Status Expect(char c) {
    return Accept(c) ? absl::OkStatus() : Error(absl::StrCat("expected '", std::string(1, c), "'"));
  }
  std::string Word() {
    SkipBlanks();
    const size_t begin = at_;
    while (at_ < line_.size() &&
           (std::isalnum(static_cast<unsigned char>(line_[at_])) || line_[at_] == '_'))
      ++at_;
    return std::string(line_.substr(begin, at_ - begin));
  }
  absl::StatusOr<int64_t> Integer() {
    SkipBlanks();
    const size_t begin = at_;
    if (at_ < line_.size() && line_[at_] == '-') ++at_;
    while (at_ < line_.size() && std::isdigit(static_cast<unsigned char>(line_[at_]))) ++at_;
    int64_t value = 0;
    if (!absl::SimpleAtoi(line_.substr(begin, at_ - begin), &value)) {
      at_ = begin;
      return Error("expected a whole number that fits in 64 bits");
    }
    return value;
  }
  absl::StatusOr<std::string> Quoted() {
    HONE_RETURN_IF_ERROR(Expect('"'));
    const size_t end = line_.find('"', at_);
    if (end == absl::string_view::npos) return Error("this string does not end");
    std::string text(line_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }
  absl::StatusOr<std::vector<int64_t>> IntegerList() {
    HONE_RETURN_IF_ERROR(Expect('['));
    std::vector<int64_t> numbers;
    if (Accept(']')) return numbers;
    do {
      HONE_ASSIGN_OR_RETURN(numbers.emplace_back(), Integer());
      if (numbers.size() > 65536) return Error("a list of more than 65536 numbers");
    } while (Accept(','));
    HONE_RETURN_IF_ERROR(Expect(']'));
    return numbers;
  }
  char PeekChar() {
    SkipBlanks();
    return at_ < line_.size() ? line_[at_] : '\0';
  }
  size_t position() const { return at_; }
  void set_position(size_t at) { at_ = at; }

 private:
  absl::string_view line_;
  int number_;
  size_t at_ = 0;
};

class TraceParser {
 public:
  absl::Status Line(absl::string_view text, int number) {
    LineParser line(text, number);
    if (line.AtEnd()) return absl::OkStatus();
    if (static_cast<int>(result_.trace.instructions.size()) >= kMaxInstructions) {
      return line.Error(absl::StrCat("more than ", kMaxInstructions, " instructions"));
    }
    Instruction instruction;
    std::vector<std::string> names;
    do {
      names.push_back(line.Word());
    } while (line.Accept(','));
    const bool has_results = line.Accept('=');
    if (!has_results && names.size() != 1) return line.Error("expected '='");
    const std::string primitive = has_results ? line.Word() : names[0];
    if (!has_results) names.clear();
    instruction.primitive = FindPrimitive(primitive);
    if (instruction.primitive == nullptr)
      return line.Error(
          absl::StrCat("unknown primitive '", primitive, "'", KnownPrimitives(primitive)));
    HONE_RETURN_IF_ERROR(Operands(line, instruction));
    const absl::string_view kinds = instruction.primitive->results;
    const bool repeats = !kinds.empty() && kinds.back() == '*';
    if (repeats ? names.size() + 2 < kinds.size() : names.size() != kinds.size()) {
      return line.Error(absl::StrCat(primitive, " gives ", kinds.size(),
                                     kinds.size() == 1 ? " result" : " results", ", not ",
                                     names.size(), FormOf(*instruction.primitive)));
    }
    for (size_t i = 0; i < names.size(); ++i) {
      const char letter = kinds[std::min(i, repeats ? kinds.size() - 2 : kinds.size() - 1)];
      Operand result = result_.trace.NewRegister(letter);
      if (names[i].empty() || std::isdigit(static_cast<unsigned char>(names[i][0])) ||
          registers_.contains(names[i])) {
        return line.Error(absl::StrCat("result '", names[i], "' is not a valid new name"));
      }
      registers_[names[i]] = result;
      instruction.results.push_back(std::move(result));
    }
    if (!instruction.primitive->samples && !instruction.attributes.empty()) {
      return line.Error(absl::StrCat(primitive, " has no attribute '",
                                     instruction.attributes[0].name, "'",
                                     FormOf(*instruction.primitive)));
    }
    if (instruction.primitive->samples) {
      auto count = DecisionCount(instruction);
      if (!count.ok()) return line.Error(count.status().message());
      if (*count != static_cast<int>(names.size())) {
        return line.Error(
            absl::StrCat(primitive, " draws ", *count, " numbers here, but names ", names.size()));
      }
      instruction.decision_begin = result_.trace.decisions;
      instruction.decision_count = *count;
      result_.trace.decisions += *count;
      const bool decided = line.Accept('=');
      if (instruction.decision_begin > 0 && decided == result_.decisions.empty()) {
        return line.Error("some decisions are given and others are open; give all or none");
      }
      if (decided) {
        HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> values, line.IntegerList());
        if (static_cast<int>(values.size()) != *count) {
          return line.Error(absl::StrCat("expected ", *count, " decisions, found ", values.size()));
        }
        result_.decisions.insert(result_.decisions.end(), values.begin(), values.end());
      }
    }
    if (!line.AtEnd()) return line.Error("unexpected text after the instruction");
    result_.trace.instructions.push_back(std::move(instruction));
    return absl::OkStatus();
  }

  ParsedTrace Finish() { return std::move(result_); }

 private:
  absl::Status Operands(LineParser& line, Instruction& instruction) {
    HONE_RETURN_IF_ERROR(line.Expect('('));
    if (line.Accept(')')) return EnoughOperands(line, instruction);
    do {
      const char c = line.PeekChar();
      const size_t begin = line.position();
      if (c == '"') {
        HONE_ASSIGN_OR_RETURN(std::string text, line.Quoted());
        instruction.operands.push_back(Text(std::move(text)));
      } else if (std::isdigit(static_cast<unsigned char>(c)) || c == '-') {
        HONE_ASSIGN_OR_RETURN(const int64_t number, line.Integer());
        instruction.operands.push_back(Number(number));
      } else {
        const std::string word = line.Word();
        if (line.Accept('=')) {
          Attribute attribute{.name = word};
          if (line.PeekChar() == '[') {
            HONE_ASSIGN_OR_RETURN(attribute.numbers, line.IntegerList());
          } else {
            HONE_ASSIGN_OR_RETURN(attribute.numbers.emplace_back(), line.Integer());
          }
          if (absl::c_any_of(instruction.attributes,
                             [&](const Attribute& a) { return a.name == attribute.name; })) {
            line.set_position(begin);
            return line.Error(absl::StrCat("attribute ", word, " is given twice"));
          }
          instruction.attributes.push_back(std::move(attribute));
          continue;
        }
        const auto reg = registers_.find(word);
        if (reg == registers_.end()) {
          line.set_position(begin);
          return line.Error(
              absl::StrCat("'", word, "' is not set before", Instead(instruction, word)));
        }
        instruction.operands.push_back(reg->second);
      }
      if (const absl::Status status = CheckOperand(instruction); !status.ok()) {
        line.set_position(begin);
        return line.Error(status.message());
      }
    } while (line.Accept(','));
    HONE_RETURN_IF_ERROR(line.Expect(')'));
    return EnoughOperands(line, instruction);
  }
  // Checks the operand that was read last.
  static absl::Status CheckOperand(const Instruction& instruction) {
    const Primitive& primitive = *instruction.primitive;
    const Argument* const argument = primitive.ArgumentOf(instruction.operands.size() - 1);
    if (argument == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(primitive.name, " takes fewer arguments", FormOf(primitive)));
    }
    const Operand::Kind given = instruction.operands.back().kind;
    if (Fits(argument->kind, given)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the argument '", argument->name, "' of ", primitive.name, " must be ",
                     KindText(argument->kind), ", not ", KindText(given), FormOf(primitive)));
  }
  static absl::Status EnoughOperands(const LineParser& line, const Instruction& instruction) {
    const Primitive& primitive = *instruction.primitive;
    const size_t count = instruction.operands.size();
    if (count >= primitive.LeastOperands()) return absl::OkStatus();
    return line.Error(absl::StrCat("the argument '", primitive.ArgumentOf(count)->name, "' of ",
                                   primitive.name, " is missing", FormOf(primitive)));
  }
  // The end of an error about an unknown register: the register that was probably meant.
  std::string Instead(const Instruction& instruction, const std::string& word) const {
    const Argument* const argument = instruction.primitive->ArgumentOf(instruction.operands.size());
    if (argument != nullptr && argument->kind == Argument::Kind::kString)
      return absl::StrCat("; write \"", word, "\" for a string");
    std::vector<std::string> names;
    for (const auto& [name, unused] : registers_) names.push_back(name);
    return DidYouMean(word, names);
  }

  ParsedTrace result_;
  std::map<std::string, Operand> registers_;
};

}  // namespace

absl::StatusOr<ParsedTrace> ParseTrace(absl::string_view text, int first_line) {
  TraceParser parser;
  int number = first_line;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (const absl::Status status = parser.Line(line, number); !status.ok())
      return ir::MarkText(status, line, number);
    ++number;
  }
  return parser.Finish();
}

bool IsTraceHeader(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "trace")) return false;
  if (line.empty()) return true;
  const absl::string_view version = absl::StripLeadingAsciiWhitespace(line);
  return version.size() < line.size() &&
         absl::c_all_of(version, [](char c) { return absl::ascii_isdigit(c); });
}

absl::StatusOr<TraceFile> ParseTraceFile(absl::string_view text) {
  if (text.size() > ir::kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("1:1: a trace file of ", text.size(), " bytes; at most ", ir::kMaxTextBytes));
  }
  size_t begin = 0;
  int line = 1;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const absl::string_view content = absl::StripAsciiWhitespace(text.substr(begin, end - begin));
    const size_t next = std::min(end + 1, text.size());
    if (IsTraceHeader(content)) {
      if (content != kTraceHeader) {
        return ir::MarkText(absl::InvalidArgumentError(
                                absl::StrCat(line, ":1: '", content.substr(0, 64),
                                             "': this program reads '", kTraceHeader, "' only")),
                            text);
      }
      HONE_ASSIGN_OR_RETURN(ir::Workload workload, ir::ParseWorkload(text.substr(0, begin)));
      HONE_ASSIGN_OR_RETURN(ParsedTrace parsed, ParseTrace(text.substr(next), line + 1));
      return TraceFile{std::move(workload), std::move(parsed)};
    }
    begin = next;
    ++line;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(line, ":1: a line '", kTraceHeader, "' must follow the workload"));
}

}  // namespace hone::schedule
