#include "tests/oracles/program_parser.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/ir/cases.h"
#include "common/ir/expr_parser.h"
#include "common/ir/program.h"
#include "common/ir/token_reader.h"
#include "tests/oracles/buffer_parser.h"

namespace hone::ir {
namespace {

// An atom table ordered so that indices print their terms in the same order as a given text. (An
// index sorts its terms by atom.)
struct AtomPlan {
  AtomTable atoms;
  std::vector<AtomId> vars;  // the given variables as atoms of this table
};

// Reorders the atoms of a table that was filled while parsing a text. `sums` lists the atoms of
// each sum, in textual order. An atom comes before those to its right in a sum and before any
// floordiv or mod that contains it. If no such order exists, because Hone did not print the text,
// the atoms that cannot be ordered come last, in their old order.
AtomPlan PlanAtoms(const AtomTable& atoms, absl::Span<const AtomId> vars,
                   const std::vector<std::vector<AtomId>>& sums) {
  const int count = atoms.size();
  std::vector<std::vector<AtomId>> after(count);
  std::vector<int> before(count, 0);
  const auto follows = [&](AtomId first, AtomId second) {
    if (first == second) return;
    after[first].push_back(second);
    ++before[second];
  };
  for (const std::vector<AtomId>& sum : sums) {
    for (size_t i = 1; i < sum.size(); ++i) follows(sum[i - 1], sum[i]);
  }
  for (AtomId id = 0; id < count; ++id) {
    for (const IndexTerm& term : atoms[id].argument.terms()) follows(term.atom, id);
  }
  std::priority_queue<AtomId, std::vector<AtomId>, std::greater<>> ready;
  for (AtomId id = 0; id < count; ++id) {
    if (before[id] == 0) ready.push(id);
  }
  std::vector<AtomId> order;
  std::vector<bool> placed(count, false);
  while (!ready.empty()) {
    const AtomId id = ready.top();
    ready.pop();
    order.push_back(id);
    placed[id] = true;
    for (const AtomId next : after[id]) {
      if (--before[next] == 0) ready.push(next);
    }
  }
  for (AtomId id = 0; id < count; ++id) {
    if (!placed[id]) order.push_back(id);
  }
  AtomPlan plan;
  std::vector<AtomId> renamed(count, kNoAtom);
  for (const AtomId id : order) {
    const Atom& atom = atoms[id];
    if (atom.kind == Atom::Kind::kVar) {
      renamed[id] = plan.atoms.AddVar(atom.name, atom.range.extent());
      continue;
    }
    Index argument(atom.argument.constant());
    for (const IndexTerm& term : atom.argument.terms())
      argument += Index::Of(renamed[term.atom], term.coeff);
    renamed[id] = plan.atoms.Intern(atom.kind, argument, atom.divisor).terms()[0].atom;
  }
  for (const AtomId var : vars) plan.vars.push_back(renamed[var]);
  return plan;
}

struct Line {
  int number = 1;
  int depth = 0;  // in steps of two spaces
  std::string text;
};

class ProgramParser final : private ExprNames {
 public:
  // `plan`: the result of the first pass; null in the first pass itself.
  ProgramParser(std::shared_ptr<const Workload> workload, const AtomPlan* plan)
      : program_(Program::FromWorkload(std::move(workload))), plan_(plan) {
    program_.atoms = plan != nullptr ? plan->atoms : AtomTable();
    program_.pool = ExprPool();
    program_.extents = ExtentTable();
    program_.buffers.clear();
    program_.blocks.clear();
    program_.nodes.clear();
    program_.kernels.clear();
  }

  absl::Status Read(const std::vector<Line>& lines) {
    size_t at = 0;
    while (at < lines.size() && !absl::StartsWith(lines[at].text, "kernel")) {
      HONE_RETURN_IF_ERROR(
          OnLine(lines[at], [&](TokenReader& reader) { return ReadBuffer(lines[at], reader); }));
      ++at;
    }
    HONE_RETURN_IF_ERROR(
        CheckBuffers(lines.empty() ? Line{} : lines[std::min(at, lines.size() - 1)]));
    while (at < lines.size()) {
      const Line& line = lines[at++];
      if (static_cast<int>(program_.nodes.size()) >= kMaxProgramNodes) {
        return Error(line,
                     absl::StrCat("more than ", kMaxProgramNodes, " kernels, loops and blocks"));
      }
      bool block = false;
      HONE_RETURN_IF_ERROR(
          OnLine(line, [&](TokenReader& reader) { return ReadNode(line, reader, block); }));
      if (!block) continue;
      if (at == lines.size() || lines[at].depth != line.depth + 1) {
        return Error(line, "the line behind a block, one step further in, says what it computes");
      }
      const Line& body = lines[at++];
      HONE_RETURN_IF_ERROR(OnLine(body, [&](TokenReader& reader) { return ReadBody(reader); }));
    }
    if (program_.kernels.empty())
      return Error(lines.empty() ? Line{} : lines.back(), "a line 'kernel NAME' is missing");
    return absl::OkStatus();
  }

  // REQUIRES a successful first pass.
  AtomPlan MakePlan() const { return PlanAtoms(program_.atoms, vars_, sums_); }
  Program Take() && { return std::move(program_); }

 private:
  // Implements ExprNames.
  Element Find(const std::string& name) const override {
    const auto buffer = buffer_ids_.find(name);
    if (buffer == buffer_ids_.end()) return {};
    const Buffer& found = program_.buffers[buffer->second];
    return {buffer->second, found.dtype, &found.shape};
  }
  AtomId FindAxis(const std::string& name) const override {
    if (in_body_) {
      for (const BlockIter& iter : program_.blocks.back().iters) {
        if (program_.atoms[iter.var].name == name) return iter.var;
      }
      return kNoAtom;
    }
    for (auto loop = stack_.rbegin(); loop != stack_.rend(); ++loop) {
      const Node& node = program_.node(*loop);
      if (node.kind == Node::Kind::kLoop && program_.atoms[node.var].name == name) return node.var;
    }
    return kNoAtom;
  }

  static absl::Status Error(const Line& line, absl::string_view what) {
    return TokenReader::Error({.line = line.number, .column = 2 * line.depth + 1}, what);
  }

  // Parses one line with its own tokens.
  template <typename Read>
  absl::Status OnLine(const Line& line, Read read) {
    HONE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(line.text, line.number));
    for (Token& token : tokens) token.column += 2 * line.depth;
    words_ += tokens.size();
    if (words_ > kMaxProgramWords)
      return Error(line, absl::StrCat("more than ", kMaxProgramWords, " words"));
    TokenReader reader(std::move(tokens));
    HONE_RETURN_IF_ERROR(read(reader));
    return reader.EndOfStatement();
  }

  ExprParser Expressions(TokenReader& reader) {
    return ExprParser(
        reader, *this, program_.atoms, program_.pool,
        {.max_operators = kMaxProgramWords, .max_index = kMaxProgramIndex, .as_written = true});
  }
  void KeepOrder(ExprParser& parser) {
    if (plan_ != nullptr) return;
    const std::vector<std::vector<AtomId>>& sums = parser.indices().sums();
    sums_.insert(sums_.end(), sums.begin(), sums.end());
  }

  AtomId Declare(std::string name, int64_t extent) {
    if (plan_ != nullptr) return plan_->vars[declared_++];
    vars_.push_back(program_.atoms.AddVar(std::move(name), extent));
    return vars_.back();
  }

  absl::Status ReadBuffer(const Line& line, TokenReader& reader);
  absl::Status CheckBuffers(const Line& line) const;
  absl::Status ReadNode(const Line& line, TokenReader& reader, bool& block);
  absl::Status ReadLoop(TokenReader& reader, Node& node);
  absl::Status ReadBlock(TokenReader& reader, Node& node);
  absl::Status ReadBody(TokenReader& reader);
  absl::Status ReadAnnotations(TokenReader& reader, bool loop, Annotations& annotations);

  Program program_;
  const AtomPlan* const plan_;
  size_t declared_ = 0;
  std::vector<AtomId> vars_;               // in order of declaration
  std::vector<std::vector<AtomId>> sums_;  // terms in textual order
  std::map<std::string, BufferId> buffer_ids_;
  std::vector<NodeId> stack_;  // ancestors of the next line
  bool in_body_ = false;
  size_t words_ = 0;
};

absl::Status ProgramParser::ReadBuffer(const Line& line, TokenReader& reader) {
  if (line.depth != 0) return Error(line, "buffers are not indented");
  HONE_ASSIGN_OR_RETURN(Buffer buffer, ParseBuffer(reader, program_.workload()));
  if (buffer_ids_.contains(buffer.name)) {
    return Error(line, absl::StrCat("buffer ", buffer.name, " is declared twice"));
  }
  if (program_.buffers.size() >= kMaxProgramBuffers) {
    return Error(line, absl::StrCat("more than ", kMaxProgramBuffers, " buffers"));
  }
  buffer_ids_[buffer.name] = static_cast<BufferId>(program_.buffers.size());
  program_.buffers.push_back(std::move(buffer));
  return absl::OkStatus();
}

absl::Status ProgramParser::CheckBuffers(const Line& line) const {
  for (const Tensor& tensor : program_.workload().tensors) {
    if ((tensor.input || tensor.output) && !buffer_ids_.contains(tensor.name)) {
      return Error(line, absl::StrCat("the workload's ", tensor.input ? "input " : "output ",
                                      tensor.name, " is not declared"));
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadNode(const Line& line, TokenReader& reader, bool& block) {
  if (line.depth > static_cast<int>(stack_.size()))
    return Error(line, "indented further than the line above allows");
  if (line.depth >= kMaxProgramDepth)
    return Error(line, absl::StrCat("nested deeper than ", kMaxProgramDepth));
  stack_.resize(line.depth);
  Node node;
  node.parent = stack_.empty() ? kNoNode : stack_.back();
  if (reader.Accept("kernel")) {
    if (line.depth != 0) return Error(line, "kernels are not indented");
    node.kind = Node::Kind::kKernel;
    HONE_ASSIGN_OR_RETURN(node.name, reader.Name("the kernel's name"));
    program_.kernels.push_back(static_cast<NodeId>(program_.nodes.size()));
  } else if (line.depth == 0) {
    return reader.Unexpected("'kernel'");
  } else if (reader.Accept("barrier")) {
    node.kind = Node::Kind::kBarrier;
  } else if (reader.Accept("block")) {
    block = true;
    HONE_RETURN_IF_ERROR(ReadBlock(reader, node));
  } else {
    HONE_RETURN_IF_ERROR(ReadLoop(reader, node));
  }
  const auto id = static_cast<NodeId>(program_.nodes.size());
  if (node.parent != kNoNode) program_.nodes[node.parent].children.push_back(id);
  // Blocks and barriers are not pushed on the stack, so a line below them is rejected.
  const bool holds = node.kind == Node::Kind::kKernel || node.kind == Node::Kind::kLoop;
  program_.nodes.push_back(std::move(node));
  if (holds) stack_.push_back(id);
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadLoop(TokenReader& reader, Node& node) {
  const Token token = reader.Peek();
  const auto is_loop = [&](LoopKind kind) {
    if (!reader.Accept(LoopKindName(kind))) return false;
    node.loop = kind;
    return true;
  };
  node.kind = Node::Kind::kLoop;
  if (!is_loop(LoopKind::kSerial) && !is_loop(LoopKind::kParallel) &&
      !is_loop(LoopKind::kVectorized) && !is_loop(LoopKind::kUnrolled) &&
      !is_loop(LoopKind::kBound) && !is_loop(LoopKind::kTensor)) {
    return reader.Unexpected("a loop, a block or a barrier");
  }
  // The axis is optional: "bound vthread in 4" is a loop with the name of an axis.
  if (reader.Peek(1).text != "in" || reader.Peek(2).kind != Token::kNumber) {
    for (int a = 1; a <= static_cast<int>(ThreadAxis::kVThread); ++a) {
      if (!reader.Accept(ThreadAxisName(static_cast<ThreadAxis>(a)))) continue;
      node.axis = static_cast<ThreadAxis>(a);
      break;
    }
  }
  const Token name_token = reader.Peek();
  HONE_ASSIGN_OR_RETURN(std::string name, reader.Name("the loop's variable"));
  if (FindAxis(name) != kNoAtom)
    return TokenReader::Error(name_token, absl::StrCat("an enclosing loop is also called ", name));
  HONE_RETURN_IF_ERROR(reader.Expect("in"));
  HONE_ASSIGN_OR_RETURN(const int64_t extent, reader.Extent(kMaxProgramIndex));
  node.extent = ExtentTable::Constant(extent);
  HONE_RETURN_IF_ERROR(ReadAnnotations(reader, /*loop=*/true, node.annotations));
  node.var = Declare(std::move(name), extent);
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadBlock(TokenReader& reader, Node& node) {
  node.kind = Node::Kind::kBlock;
  Block block;
  HONE_ASSIGN_OR_RETURN(block.name, reader.Name("the block's name"));
  HONE_RETURN_IF_ERROR(reader.Expect(":"));
  ExprParser parser = Expressions(reader);
  std::vector<std::string> names;
  const auto ends = [&] {
    const Token& next = reader.Peek();
    return next.kind != Token::kName ||
           ((next.text == "if" || next.text == "inexact") && reader.Peek(1).text != "in");
  };
  if (!ends()) {
    do {
      const Token iter_token = reader.Peek();
      BlockIter iter;
      HONE_ASSIGN_OR_RETURN(names.emplace_back(), reader.Name("an iteration variable"));
      if (std::count(names.begin(), names.end(), names.back()) > 1) {
        return TokenReader::Error(
            iter_token, absl::StrCat("iteration variable ", names.back(), " is declared twice"));
      }
      if (names.size() > 4 * kMaxRank)
        return TokenReader::Error(iter_token,
                                  absl::StrCat("more than ", 4 * kMaxRank, " iteration variables"));
      HONE_RETURN_IF_ERROR(reader.Expect("in"));
      HONE_ASSIGN_OR_RETURN(iter.extent, reader.Extent(kMaxProgramIndex));
      HONE_RETURN_IF_ERROR(reader.Expect("="));
      HONE_ASSIGN_OR_RETURN(iter.binding, parser.indices().ParseIndex());
      if (reader.Accept("(")) {
        HONE_RETURN_IF_ERROR(reader.Expect("reduce"));
        HONE_RETURN_IF_ERROR(reader.Expect(")"));
        iter.reduce = true;
      }
      block.iters.push_back(std::move(iter));
    } while (reader.Accept(","));
  }
  while (reader.Accept("if")) {
    HONE_ASSIGN_OR_RETURN(block.predicates.emplace_back(), parser.indices().ParseCondition());
  }
  block.exact = !reader.Accept("inexact");
  HONE_RETURN_IF_ERROR(ReadAnnotations(reader, /*loop=*/false, node.annotations));
  KeepOrder(parser);
  for (size_t i = 0; i < names.size(); ++i)
    block.iters[i].var = Declare(std::move(names[i]), block.iters[i].extent);
  node.block = static_cast<int32_t>(program_.blocks.size());
  program_.blocks.push_back(std::move(block));
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadBody(TokenReader& reader) {
  in_body_ = true;
  Block& block = program_.blocks.back();
  ExprParser parser = Expressions(reader);
  const Token first = reader.Peek();
  const bool tuple = reader.Accept("(");
  do {
    const Token token = reader.Peek();
    HONE_ASSIGN_OR_RETURN(const std::string name, reader.Name("the buffer that is written"));
    const Element element = Find(name);
    if (element.shape == nullptr)
      return TokenReader::Error(token, absl::StrCat("unknown buffer '", name, "'"));
    if (program_.buffers[element.id].input) {
      return TokenReader::Error(token, absl::StrCat(name, " is an input: no block writes it"));
    }
    if (std::count(block.outputs.begin(), block.outputs.end(), element.id) > 0) {
      return TokenReader::Error(token, absl::StrCat("two components are written to ", name));
    }
    HONE_RETURN_IF_ERROR(reader.Expect("["));
    HONE_ASSIGN_OR_RETURN(IndexList indices, parser.indices().ParseIndices(token, name, element));
    if (block.outputs.empty()) {
      block.indices = std::move(indices);
    } else if (block.indices != indices) {
      return TokenReader::Error(token, "all components are written at the same indices");
    }
    block.outputs.push_back(element.id);
  } while (tuple && reader.Accept(","));
  if (tuple) HONE_RETURN_IF_ERROR(reader.Expect(")"));
  HONE_RETURN_IF_ERROR(reader.Expect("="));
  // "max A[i]" reduces; "max(a, b)" and "max[i]" do not.
  if (!reader.IsJoined()) block.reducer = ReducerFromName(reader.Peek().text);
  if (block.reducer != Reducer::kNone) reader.Next();
  if (tuple) HONE_RETURN_IF_ERROR(reader.Expect("("));
  for (size_t c = 0; c < block.outputs.size(); ++c) {
    if (c > 0) HONE_RETURN_IF_ERROR(reader.Expect(","));
    const Token token = reader.Peek();
    const DType dtype = program_.buffers[block.outputs[c]].dtype;
    HONE_ASSIGN_OR_RETURN(const ExprId value, parser.ParseExpr(DType::kF32));
    if (program_.pool[value].dtype != dtype) {
      return TokenReader::Error(
          token, absl::StrCat("this is ", DTypeName(program_.pool[value].dtype), ", but ",
                              program_.buffers[block.outputs[c]].name, " is ", DTypeName(dtype)));
    }
    block.values.push_back(value);
  }
  if (tuple) HONE_RETURN_IF_ERROR(reader.Expect(")"));
  ExprPool of_cases = program_.pool;
  if (!CasesOf(of_cases, program_.atoms, block.values)) {
    return TokenReader::Error(first, absl::StrCat("the guarded values of block ", block.name,
                                                  " have more than ", kMaxCases, " cases"));
  }
  while (reader.Accept("where")) {
    HONE_ASSIGN_OR_RETURN(block.guards.emplace_back(), parser.indices().ParseCondition());
  }
  const Token init_token = reader.Peek();
  block.has_init = reader.Accept("init");
  if (block.has_init && block.reducer == Reducer::kNone)
    return TokenReader::Error(init_token, "only a reduction has an init");
  if (block.reducer != Reducer::kNone &&
      ReducerArity(block.reducer) != static_cast<int>(block.outputs.size())) {
    return TokenReader::Error(
        first, absl::StrCat(ReducerName(block.reducer), " has ", ReducerArity(block.reducer),
                            " components, not ", block.outputs.size()));
  }
  KeepOrder(parser);
  in_body_ = false;
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadAnnotations(TokenReader& reader, bool loop,
                                            Annotations& annotations) {
  while (reader.Accept("@")) {
    const Token token = reader.Peek();
    HONE_ASSIGN_OR_RETURN(const std::string name, reader.Name("an annotation"));
    const AnnotationInfo* info = FindAnnotation(name);
    if (info == nullptr || !(loop ? info->on_loop : info->on_block)) {
      return TokenReader::Error(
          token, absl::StrCat("'", name, "' is not an annotation of a ", loop ? "loop" : "block"));
    }
    HONE_RETURN_IF_ERROR(reader.Expect("="));
    HONE_ASSIGN_OR_RETURN(const int64_t value, reader.Integer("a number"));
    if (value < info->min || value > info->max) {
      return TokenReader::Error(token,
                                absl::StrCat(name, " is from ", info->min, " to ", info->max));
    }
    Set(annotations, info->key, value);
  }
  return absl::OkStatus();
}

// Splits a text into its non-empty lines and their indentation.
absl::StatusOr<std::vector<Line>> SplitLines(absl::string_view text) {
  std::vector<Line> lines;
  int number = 0;
  for (absl::string_view content : absl::StrSplit(text, '\n')) {
    ++number;
    size_t blanks = 0;
    bool marked = false;
    while (blanks < content.size() &&
           (content[blanks] == ' ' || (content[blanks] == '>' && !marked))) {
      marked |= content[blanks] == '>';
      ++blanks;
    }
    const absl::string_view rest = content.substr(blanks);
    if (rest.empty() || rest[0] == '#' || rest == "\r") continue;
    if (marked && blanks == 1) blanks = 0;  // a marked kernel
    if (blanks % 2 != 0) {
      return TokenReader::Error({.line = number, .column = static_cast<int>(blanks) + 1},
                                "lines must be indented by two spaces per level");
    }
    lines.push_back({number, static_cast<int>(blanks / 2), std::string(rest)});
  }
  return lines;
}

}  // namespace

absl::StatusOr<Program> ParseProgram(std::shared_ptr<const Workload> workload,
                                     absl::string_view text) {
  if (text.size() > kMaxProgramTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("1:1: a program of ", text.size(), " bytes; at most ", kMaxProgramTextBytes));
  }
  const absl::StatusOr<std::vector<Line>> lines = SplitLines(text);
  if (!lines.ok()) return MarkText(lines.status(), text);
  ProgramParser first(workload, nullptr);
  if (const absl::Status status = first.Read(*lines); !status.ok()) return MarkText(status, text);
  const AtomPlan plan = first.MakePlan();
  ProgramParser second(std::move(workload), &plan);
  HONE_RETURN_IF_ERROR(second.Read(*lines));
  return std::move(second).Take();
}

}  // namespace hone::ir
