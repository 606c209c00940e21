#include "common/schedule/trace.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/ir/text_mark.h"
#include "common/ir/workload_parser.h"

namespace hone::schedule {
namespace {

constexpr absl::string_view kTraceHeader = "trace 1";
constexpr int kMaxInstructions = 4096;

std::string OperandText(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kBlock:
      return absl::StrCat("b", operand.reg);
    case Operand::Kind::kLoop:
      return absl::StrCat("l", operand.reg);
    case Operand::Kind::kInt:
      return absl::StrCat("x", operand.reg);
    case Operand::Kind::kNumber:
      return absl::StrCat(operand.number);
    case Operand::Kind::kString:
      return absl::StrCat("\"", operand.text, "\"");
  }
  return "";
}

Operand::Kind KindOf(char letter) {
  return letter == 'b'   ? Operand::Kind::kBlock
         : letter == 'l' ? Operand::Kind::kLoop
                         : Operand::Kind::kInt;
}

int& Counter(Trace& trace, Operand::Kind kind) {
  return kind == Operand::Kind::kBlock  ? trace.blocks
         : kind == Operand::Kind::kLoop ? trace.loops
                                        : trace.ints;
}

// Whether operand `i` may be of this kind. The signature's last letter repeats if it ends with '*'.
bool Fits(absl::string_view signature, size_t i, Operand::Kind kind) {
  if (!signature.empty() && signature.back() == '*') {
    signature.remove_suffix(1);
    i = std::min(i, signature.size() - 1);
  }
  if (i >= signature.size()) return false;
  switch (signature[i]) {
    case 'b':
      return kind == Operand::Kind::kBlock;
    case 'l':
      return kind == Operand::Kind::kLoop;
    case 'n':
      return kind == Operand::Kind::kBlock || kind == Operand::Kind::kLoop;
    case 's':
      return kind == Operand::Kind::kString;
    default:
      return kind == Operand::Kind::kInt || kind == Operand::Kind::kNumber;
  }
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
      return line.Error(absl::StrCat("unknown primitive '", primitive, "'"));
    HONE_RETURN_IF_ERROR(Operands(line, instruction));
    const absl::string_view kinds = instruction.primitive->results;
    const bool repeats = !kinds.empty() && kinds.back() == '*';
    if (repeats ? names.size() + 1 < kinds.size() - 1 : names.size() != kinds.size()) {
      return line.Error(
          absl::StrCat(primitive, " gives ", kinds.size(), " results, not ", names.size()));
    }
    for (size_t i = 0; i < names.size(); ++i) {
      const char letter = kinds[std::min(i, repeats ? kinds.size() - 2 : kinds.size() - 1)];
      Operand result{.kind = KindOf(letter)};
      int& count = Counter(result_.trace, result.kind);
      result.reg = count++;
      if (names[i].empty() || std::isdigit(static_cast<unsigned char>(names[i][0])) ||
          registers_.contains(names[i])) {
        return line.Error(absl::StrCat("result '", names[i], "' is not a fresh name"));
      }
      registers_[names[i]] = result;
      instruction.results.push_back(std::move(result));
    }
    if (!instruction.primitive->samples && !instruction.attributes.empty()) {
      return line.Error(
          absl::StrCat(primitive, " has no attribute '", instruction.attributes[0].name, "'"));
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
          if (std::any_of(instruction.attributes.begin(), instruction.attributes.end(),
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
          return line.Error(absl::StrCat("'", word, "' is not set before"));
        }
        instruction.operands.push_back(reg->second);
      }
      if (!Fits(instruction.primitive->operands, instruction.operands.size() - 1,
                instruction.operands.back().kind)) {
        line.set_position(begin);
        return line.Error(absl::StrCat("operand ", instruction.operands.size(), " does not fit ",
                                       instruction.primitive->name, "(",
                                       instruction.primitive->operands, ")"));
      }
    } while (line.Accept(','));
    HONE_RETURN_IF_ERROR(line.Expect(')'));
    return EnoughOperands(line, instruction);
  }
  absl::Status EnoughOperands(const LineParser& line, const Instruction& instruction) const {
    const absl::string_view signature = instruction.primitive->operands;
    const bool repeats = !signature.empty() && signature.back() == '*';
    const size_t least = repeats ? signature.size() - 2 : signature.size();
    if (instruction.operands.size() >= least) return absl::OkStatus();
    return line.Error(absl::StrCat(instruction.primitive->name, "(", signature, ") takes ",
                                   repeats ? "at least " : "", least, " operands, not ",
                                   instruction.operands.size()));
  }

  ParsedTrace result_;
  std::map<std::string, Operand> registers_;
};

}  // namespace

std::string Trace::ToText(absl::Span<const int64_t> decided) const {
  std::string text;
  for (const Instruction& instruction : instructions) {
    if (!instruction.results.empty()) {
      absl::StrAppend(
          &text,
          absl::StrJoin(instruction.results, ", ",
                        [](std::string* out, const Operand& o) { *out += OperandText(o); }),
          " = ");
    }
    absl::StrAppend(&text, instruction.primitive->name, "(");
    absl::string_view separator = "";
    for (const Operand& operand : instruction.operands) {
      absl::StrAppend(&text, separator, OperandText(operand));
      separator = ", ";
    }
    for (const Attribute& attribute : instruction.attributes) {
      const std::string numbers = absl::StrJoin(attribute.numbers, ", ");
      const bool one = attribute.numbers.size() == 1;
      absl::StrAppend(&text, separator, attribute.name, "=", one ? "" : "[", numbers,
                      one ? "" : "]");
      separator = ", ";
    }
    text += ")";
    if (instruction.decision_count > 0 && !decided.empty()) {
      absl::StrAppend(
          &text, " = [",
          absl::StrJoin(decided.subspan(instruction.decision_begin, instruction.decision_count),
                        ", "),
          "]");
    }
    text += "\n";
  }
  return text;
}

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
    if (content.substr(0, 6) == "trace " || content == "trace") {
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

std::string TraceFileText(const ir::Workload& workload, const Trace& trace,
                          absl::Span<const int64_t> decided) {
  return absl::StrCat(workload.ToText(), kTraceHeader, "\n", trace.ToText(decided));
}

absl::StatusOr<int> DecisionCount(const Instruction& instruction) {
  const bool tile = instruction.primitive->results == "i*";
  const bool location =
      instruction.primitive->results == "l";  // the candidates are loops of the program
  int parts = 0;
  bool candidates = false;
  for (const Attribute& attribute : instruction.attributes) {
    const auto is_one_from = [&](int64_t low, int64_t high) {
      return attribute.numbers.size() == 1 && attribute.numbers[0] >= low &&
             attribute.numbers[0] <= high;
    };
    if (tile && attribute.name == "parts") {
      if (!is_one_from(1, 16))
        return absl::InvalidArgumentError("parts must be one number from 1 to 16");
      parts = static_cast<int>(attribute.numbers[0]);
    } else if (tile && attribute.name == "max_inner") {
      if (!is_one_from(0, ir::kMaxElements))
        return absl::InvalidArgumentError("max_inner must be one number, 0 or more");
    } else if (location && attribute.name == "outermost") {
      if (!is_one_from(1, 64))
        return absl::InvalidArgumentError("outermost must be one number from 1 to 64");
    } else if (!tile && !location && attribute.name == "candidates") {
      candidates = true;
      if (attribute.numbers.empty() ||
          attribute.numbers.size() % instruction.primitive->results.size() != 0) {
        return absl::InvalidArgumentError(absl::StrCat("candidates must be a list of rows of ",
                                                       instruction.primitive->results.size()));
      }
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(instruction.primitive->name, " has no attribute '", attribute.name, "'"));
    }
  }
  if (tile && parts == 0)
    return absl::InvalidArgumentError(absl::StrCat(instruction.primitive->name, " needs parts="));
  if (!tile && !location && !candidates)
    return absl::InvalidArgumentError(
        absl::StrCat(instruction.primitive->name, " needs candidates=[…]"));
  return tile ? parts : static_cast<int>(instruction.primitive->results.size());
}

std::vector<Operand> TraceBuilder::Add(absl::string_view name, std::vector<Operand> operands,
                                       std::vector<Attribute> attributes, int results) {
  Instruction instruction{.primitive = FindPrimitive(name),
                          .operands = std::move(operands),
                          .attributes = std::move(attributes)};
  if (instruction.primitive == nullptr) std::abort();
  absl::string_view kinds = instruction.primitive->results;
  if (instruction.primitive->samples) {
    instruction.decision_begin = trace_.decisions;
    instruction.decision_count = DecisionCount(instruction).value();
    trace_.decisions += instruction.decision_count;
    results = instruction.decision_count;
  }
  const bool repeats = !kinds.empty() && kinds.back() == '*';
  if (repeats) kinds.remove_suffix(1);
  if (results < 0) results = static_cast<int>(kinds.size());
  for (int i = 0; i < results; ++i) {
    Operand result{.kind = KindOf(kinds[std::min<size_t>(i, kinds.size() - 1)])};
    result.reg = Counter(trace_, result.kind)++;
    instruction.results.push_back(result);
  }
  trace_.instructions.push_back(std::move(instruction));
  return trace_.instructions.back().results;
}

}  // namespace hone::schedule
