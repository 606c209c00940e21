#include "common/ir/workload_parser.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/ir/expr_parser.h"
#include "common/ir/token_reader.h"

namespace hone::ir {
namespace {

class Parser final : private ExprNames {
 public:
  explicit Parser(std::vector<Token> tokens)
      : stage_names_(StageNames(tokens)),
        reader_(std::move(tokens)),
        exprs_(reader_, *this, workload_.atoms, workload_.pool) {}

  absl::StatusOr<Workload> Parse() {
    reader_.SkipNewlines();
    HONE_RETURN_IF_ERROR(reader_.Expect("workload"));
    HONE_ASSIGN_OR_RETURN(workload_.name, reader_.Name("the workload's name"));
    HONE_RETURN_IF_ERROR(reader_.EndOfStatement());
    while (reader_.SkipNewlines(), reader_.Peek().kind != Token::kEnd) {
      HONE_RETURN_IF_ERROR(reader_.Peek().text == "input" && reader_.Peek(1).kind == Token::kName
                               ? InputStatement()
                               : StageStatement());
      HONE_RETURN_IF_ERROR(reader_.EndOfStatement());
    }
    if (const absl::Status status = workload_.Validate(); !status.ok())
      return Error(reader_.Peek(), status.message());
    HONE_RETURN_IF_ERROR(CheckNoneDangles());
    return std::move(workload_);
  }

 private:
  // Returns the names that statements begin with.
  static std::set<std::string> StageNames(const std::vector<Token>& tokens) {
    std::set<std::string> names;
    bool beginning = true;
    for (const Token& token : tokens) {
      if (token.kind == Token::kName && beginning) names.insert(token.text);
      if (token.kind == Token::kSymbol && token.text != "(" && token.text != ",") beginning = false;
      if (token.kind == Token::kNewline) beginning = true;
    }
    return names;
  }

  // Checks that every stage contributes to an output.
  absl::Status CheckNoneDangles() const {
    std::vector<bool> used(workload_.tensors.size());
    for (size_t t = 0; t < used.size(); ++t) used[t] = workload_.tensors[t].output;
    for (size_t s = workload_.stages.size(); s-- > 0;) {
      const Stage& stage = workload_.stages[s];
      if (absl::c_none_of(stage.tensors, [&](BufferId tensor) { return used[tensor]; })) {
        const std::string& name = workload_.tensors[stage.tensors[0]].name;
        return Error(stage_tokens_[s],
                     absl::StrCat("stage ", name,
                                  " is unused: it is not an output, and no output depends on it"));
      }
      for (ExprId value : stage.values) {
        workload_.pool.VisitLoads(value, [&](const Expr& load) { used[load.buffer] = true; });
      }
    }
    return absl::OkStatus();
  }

  // Implements ExprNames.
  std::string WhyUnknown(const std::string& name) const override {
    if (own_names_.contains(name)) {
      return ": a stage cannot read what it computes, and there are no recurrences; a running sum "
             "is written as sum(k: 8 where k <= i) A[k]";
    }
    if (!stage_names_.contains(name)) {
      std::vector<std::string> known;
      for (const auto& [tensor, id] : tensor_ids_) known.push_back(tensor);
      return DidYouMean(name, known);
    }
    return ": it is computed by a later stage, and stages read what is above them";
  }
  Element Find(const std::string& name) const override {
    const auto tensor = tensor_ids_.find(name);
    if (tensor == tensor_ids_.end()) return {};
    const Tensor& found = workload_.tensors[tensor->second];
    return {tensor->second, found.dtype, &found.shape};
  }
  AtomId FindAxis(const std::string& name) const override {
    const auto axis = axes_.find(name);
    return axis == axes_.end() ? kNoAtom : axis->second;
  }

  static absl::Status Error(const Token& token, absl::string_view what) {
    return TokenReader::Error(token, what);
  }

  absl::Status Declare(const std::string& name, const Token& token) {
    if (tensor_ids_.contains(name))
      return Error(token, absl::StrCat("tensor ", name, " is declared twice"));
    if (workload_.tensors.size() >= kMaxTensors)
      return Error(token, absl::StrCat("more than ", kMaxTensors, " tensors"));
    tensor_ids_[name] = static_cast<BufferId>(workload_.tensors.size());
    return absl::OkStatus();
  }

  absl::Status InputStatement() {
    HONE_RETURN_IF_ERROR(reader_.Expect("input"));
    const Token token = reader_.Peek();
    Tensor tensor{.input = true};
    HONE_ASSIGN_OR_RETURN(tensor.name, reader_.Name("the input's name"));
    if (!workload_.stages.empty()) return Error(token, "inputs come before the stages");
    HONE_RETURN_IF_ERROR(reader_.Expect(":"));
    const Token dtype_token = reader_.Peek();
    HONE_ASSIGN_OR_RETURN(const std::string dtype, reader_.Name("a dtype"));
    auto known = DTypeFromName(dtype);
    if (!known.ok()) return Error(dtype_token, known.status().message());
    tensor.dtype = *known;
    HONE_RETURN_IF_ERROR(reader_.Expect("["));
    if (!reader_.Accept("]")) {
      do {
        HONE_ASSIGN_OR_RETURN(const int64_t extent, reader_.Extent(kMaxElements));
        tensor.shape.push_back(extent);
      } while (reader_.Accept(","));
      HONE_RETURN_IF_ERROR(reader_.Expect("]"));
    }
    if (reader_.Accept("<")) {
      const Token bound = reader_.Peek();
      HONE_ASSIGN_OR_RETURN(tensor.bound, reader_.Integer("a bound"));
      if (tensor.bound < 1 || tensor.bound > kMaxElements) {
        return Error(bound,
                     absl::StrCat("bound ", tensor.bound, " is not between 1 and ", kMaxElements));
      }
    }
    tensor.constant = reader_.Accept("constant");
    HONE_RETURN_IF_ERROR(Declare(tensor.name, token));
    if (const absl::Status status = ValidateTensor(tensor); !status.ok())
      return Error(token, status.message());
    workload_.tensors.push_back(std::move(tensor));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Axis>> Axes() {
    std::vector<Axis> axes;
    do {
      const Token token = reader_.Peek();
      HONE_ASSIGN_OR_RETURN(const std::string name, reader_.Name("an axis"));
      HONE_RETURN_IF_ERROR(reader_.Expect(":"));
      HONE_ASSIGN_OR_RETURN(const int64_t extent, reader_.Extent(kMaxElements));
      if (axes_.contains(name))
        return Error(token, absl::StrCat("axis ", name, " is declared twice"));
      if (axes.size() >= 2 * kMaxRank)
        return Error(token, absl::StrCat("more than ", 2 * kMaxRank, " axes"));
      axes.push_back({workload_.atoms.AddVar(name, extent), extent});
      axes_[name] = axes.back().var;
    } while (reader_.Accept(","));
    return axes;
  }

  absl::Status StageStatement() {
    axes_.clear();
    own_names_.clear();
    const bool output = reader_.Peek().text == "output" && reader_.Peek(1).kind != Token::kSymbol
                            ? reader_.Accept("output")
                        : reader_.Peek().text == "output" && reader_.Peek(1).text == "("
                            ? reader_.Accept("output")
                            : false;
    Stage stage;
    std::vector<std::string> names;
    const Token name_token = reader_.Peek();
    if (name_token.kind == Token::kName && reader_.Peek(1).kind == Token::kName) {
      return Error(name_token, absl::StrCat("unknown keyword '", name_token.text, "'",
                                            DidYouMean(name_token.text, {"input", "output"})));
    }
    const bool tuple = reader_.Accept("(");
    do {
      HONE_ASSIGN_OR_RETURN(names.emplace_back(),
                            reader_.Name("'input', 'output' or a tensor's name"));
    } while (tuple && reader_.Accept(","));
    if (tuple) HONE_RETURN_IF_ERROR(reader_.Expect(")"));
    own_names_.insert(names.begin(), names.end());
    HONE_RETURN_IF_ERROR(reader_.Expect("["));
    HONE_ASSIGN_OR_RETURN(stage.spatial, Axes());
    HONE_RETURN_IF_ERROR(reader_.Expect("]"));
    HONE_RETURN_IF_ERROR(reader_.Expect("="));
    stage.reducer = ReducerFromName(reader_.Peek().text);
    // "max(k: 8) …" reduces, "max(a, b)" does not.
    if (reader_.Peek(1).text != "(" || reader_.Peek(3).text != ":") stage.reducer = Reducer::kNone;
    if (stage.reducer != Reducer::kNone) {
      reader_.Next();
      HONE_RETURN_IF_ERROR(reader_.Expect("("));
      HONE_ASSIGN_OR_RETURN(stage.reduce, Axes());
      if (reader_.Accept("where")) {
        do {
          const Token token = reader_.Peek();
          HONE_ASSIGN_OR_RETURN(stage.guards.emplace_back(), exprs_.indices().ParseGuard());
          if (stage.guards.size() > kMaxGuards)
            return Error(token, absl::StrCat("more than ", kMaxGuards, " guards"));
        } while (reader_.Accept(","));
      }
      HONE_RETURN_IF_ERROR(reader_.Expect(")"));
    }
    const Token value_token = reader_.Peek();
    const bool tuple_value = names.size() > 1;
    if (tuple_value) HONE_RETURN_IF_ERROR(reader_.Expect("("));
    for (size_t c = 0; c < names.size(); ++c) {
      if (c > 0) HONE_RETURN_IF_ERROR(reader_.Expect(","));
      const bool as_first = c > 0 && stage.reducer == Reducer::kOnlineSoftmax;
      const DType dtype = as_first ? workload_.pool[stage.values[0]].dtype : DType::kF32;
      HONE_ASSIGN_OR_RETURN(stage.values.emplace_back(), exprs_.ParseExpr(dtype));
    }
    if (tuple_value) HONE_RETURN_IF_ERROR(reader_.Expect(")"));
    if (reader_.Peek().text == "where") {
      return Error(reader_.Peek(),
                   "put the guarded value in parentheses, as in (A[i] where 0 <= i < 8 else 0.0)");
    }
    if (static_cast<int>(names.size()) != ReducerArity(stage.reducer)) {
      return Error(value_token,
                   absl::StrCat("this stage has ", names.size(), " components, its reducer ",
                                ReducerArity(stage.reducer)));
    }
    HONE_RETURN_IF_ERROR(CheckReducer(value_token, stage));
    for (size_t c = 0; c < names.size(); ++c) {
      HONE_RETURN_IF_ERROR(Declare(names[c], name_token));
      Tensor tensor{.name = names[c],
                    .dtype = workload_.pool[stage.values[c]].dtype,
                    .output = output,
                    .stage = static_cast<int>(workload_.stages.size())};
      for (const Axis& axis : stage.spatial) tensor.shape.push_back(axis.extent);
      stage.tensors.push_back(static_cast<BufferId>(workload_.tensors.size()));
      workload_.tensors.push_back(std::move(tensor));
    }
    workload_.stages.push_back(std::move(stage));
    stage_tokens_.push_back(name_token);
    const absl::Status status = workload_.ValidateStage(workload_.stages.size() - 1);
    return status.ok() ? absl::OkStatus() : Error(name_token, status.message());
  }

  // Checks that a reducer accepts the dtypes.
  absl::Status CheckReducer(const Token& token, const Stage& stage) const {
    const auto dtype = [&](int c) { return workload_.pool[stage.values[c]].dtype; };
    const absl::string_view name = ReducerName(stage.reducer);
    if (stage.reducer != Reducer::kNone && dtype(0) == DType::kBool) {
      return Error(token, absl::StrCat(name, " of bool; cast it, as in i32(x)"));
    }
    if ((stage.reducer == Reducer::kArgMax || stage.reducer == Reducer::kArgMin) &&
        dtype(1) != DType::kI32 && dtype(1) != DType::kI64) {
      return Error(token, absl::StrCat("the second component of ", name,
                                       " must be i32 or i64, not ", DTypeName(dtype(1))));
    }
    if (stage.reducer == Reducer::kOnlineSoftmax && (!IsFloat(dtype(0)) || dtype(0) != dtype(1))) {
      return Error(token, "both components of online_softmax must be of one float dtype");
    }
    if (stage.reducer == Reducer::kOnlineSoftmax && AccumulatorOf(dtype(1)) != dtype(1)) {
      return Error(token, absl::StrCat("online_softmax adds up in f32 or f64, not ",
                                       DTypeName(dtype(1)), "; cast its values, as in f32(x)"));
    }
    return absl::OkStatus();
  }

  const std::set<std::string> stage_names_;
  std::set<std::string> own_names_;  // of the stage being read
  std::vector<Token> stage_tokens_;
  TokenReader reader_;
  Workload workload_;
  ExprParser exprs_;
  std::map<std::string, BufferId> tensor_ids_;
  std::map<std::string, AtomId> axes_;  // of the stage being read
};

}  // namespace

absl::StatusOr<Workload> ParseWorkload(absl::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("1:1: a workload of ", text.size(), " bytes; at most ", kMaxTextBytes));
  }
  absl::StatusOr<std::vector<Token>> tokens = Tokenize(text);
  if (!tokens.ok()) return MarkText(tokens.status(), text);
  absl::StatusOr<Workload> workload = Parser(*std::move(tokens)).Parse();
  if (!workload.ok()) return MarkText(workload.status(), text);
  return workload;
}

}  // namespace hone::ir
