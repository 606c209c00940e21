#include "worker/compile/c/c_store.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

namespace hone::codegen {

using ir::AtomId;
using ir::DType;
using ir::ExprId;
using lower::Stmt;

namespace {

// The dialect's function of a value and of the bits in which the number of its lane differs.
constexpr absl::string_view kShuffle = "hone_shuffle_xor";

// Finds the expressions that a store uses several times. Equal expressions, which inlining makes,
// count as one.
class Sharing {
 public:
  Sharing(const lower::LoweredProgram& program, const std::vector<ExprId>& values) : p_(program) {
    for (const ExprId value : values) Visit(Number(value), /*always=*/true);
  }
  // Returns each shared expression with its copies, operands first. Leaves out expressions that are
  // evaluated only if a select chooses them.
  std::vector<std::vector<ExprId>> Shared() const {
    std::vector<std::vector<ExprId>> shared;
    for (const ExprId id : order_) {
      const Use& use = uses_.at(id);
      const ir::Op op = p_.pool[id].op;
      const bool is_short = op == ir::Op::kConst || op == ir::Op::kIndex;
      if (use.always && use.count > 1 && !is_short) shared.push_back(copies_.at(id));
    }
    return shared;
  }

 private:
  struct Use {
    int count = 0;
    bool always = false;
  };

  // Returns the first expression that is equal to this one.
  ExprId Number(ExprId id) {
    if (id == ir::kNoExpr) return id;
    if (const auto known = numbers_.find(id); known != numbers_.end()) return known->second;
    const ir::Expr& expr = p_.pool[id];
    std::string key =
        absl::StrCat(static_cast<int>(expr.op), " ", static_cast<int>(expr.dtype), " ",
                     expr.gathered, " ", Number(expr.a), " ", Number(expr.b), " ", Number(expr.c),
                     " ", expr.buffer, " ", expr.op == ir::Op::kConst ? expr.value.ToText() : "");
    if (expr.indices >= 0) {
      for (const ir::Index& index : p_.pool.IndicesOf(expr)) {
        absl::StrAppend(&key, ", ", p_.atoms.ToString(index));
        for (const ir::IndexTerm& term : index.terms()) absl::StrAppend(&key, " #", term.atom);
      }
    }
    const ExprId number = first_.try_emplace(std::move(key), id).first->second;
    copies_[number].push_back(id);
    return numbers_[id] = number;
  }

  void Visit(ExprId id, bool always) {
    if (id == ir::kNoExpr) return;
    Use& use = uses_[id];
    if (++use.count > 1) {
      // Counts its operands only once.
      if (always) MarkAlways(id);
      return;
    }
    use.always = always;
    const ir::Expr& expr = p_.pool[id];
    const bool selects = expr.op == ir::Op::kSelect;
    Visit(Number(expr.a), always);
    Visit(Number(expr.b), always && !selects);
    Visit(Number(expr.c), always && !selects);
    order_.push_back(id);
  }

  void MarkAlways(ExprId id) {
    if (id == ir::kNoExpr || std::exchange(uses_[id].always, true)) return;
    const ir::Expr& expr = p_.pool[id];
    MarkAlways(Number(expr.a));
    if (expr.op == ir::Op::kSelect) return;
    MarkAlways(Number(expr.b));
    MarkAlways(Number(expr.c));
  }

  const lower::LoweredProgram& p_;
  std::map<ExprId, ExprId> numbers_;
  std::map<std::string, ExprId> first_;
  std::map<ExprId, std::vector<ExprId>> copies_;
  std::map<ExprId, Use> uses_;
  std::vector<ExprId> order_;
};

}  // namespace

std::string CStorePrinter::Temporary(absl::string_view wish, DType dtype,
                                     const std::string& value) {
  std::string name = names_.Add(wish);
  lines_.Assign(absl::StrCat("const ", exprs_.ValueType(dtype), " ", name), "=", value);
  return name;
}

void CStorePrinter::NameShared(const std::vector<ExprId>& values) {
  for (const std::vector<ExprId>& copies : Sharing(p_, values).Shared()) {
    if (exprs_.HasName(copies[0])) continue;
    const std::string value = exprs_.Print(copies[0]).text;
    const std::string name = Temporary("t", p_.pool[copies[0]].dtype, value);
    for (const ExprId id : copies) exprs_.NameValue(id, name);
  }
}

// Returns whether a lane may read what another lane writes.
bool CStorePrinter::MayInterfere(const Stmt& store, AtomId lane) const {
  const ir::Index& offset = store.indices[0];
  bool reads_others = false, reads_own = store.reducer != ir::Reducer::kNone;
  for (const ExprId value : store.values) {
    p_.pool.VisitLoads(value, [&](const ir::Expr& load) {
      const bool is_output =
          std::find(store.outputs.begin(), store.outputs.end(), load.buffer) != store.outputs.end();
      if (!is_output) return;
      const bool same = load.gathered < 0 && p_.pool.IndicesOf(load)[0] == offset;
      (same ? reads_own : reads_others) = true;
    });
  }
  const int64_t step = offset.CoeffOf(lane);
  const bool distinct = step != 0 && !p_.atoms.DependsOn(offset - ir::Index::Of(lane, step), lane);
  return reads_others || (reads_own && !distinct);
}

void CStorePrinter::OpenLanes(AtomId lane) {
  if (!dialect_.Unroll().empty()) lines_.Add(dialect_.Unroll());
  const std::string& name = index_.NameOf(lane);
  lines_.OpenFor("int", name, "0", absl::StrCat(p_.atoms[lane].range.extent()));
}

void CStorePrinter::LoadLanes(const Stmt& store, AtomId lane) {
  if (dialect_.Lane("v", "0").empty()) return;
  std::map<std::string, std::string> vectors;  // names by their texts
  const std::function<void(ExprId)> visit = [&](ExprId id) {
    if (id == ir::kNoExpr) return;
    const ir::Expr expr = p_.pool[id];
    for (const ExprId operand : {expr.a, expr.b, expr.c}) visit(operand);
    const bool is_output =
        std::find(store.outputs.begin(), store.outputs.end(), expr.buffer) != store.outputs.end();
    if (expr.op != ir::Op::kLoad || is_output) return;
    const std::optional<std::string> load = vectors_.LoadLanes(expr, lane);
    if (!load.has_value()) return;
    std::string& name = vectors[*load];
    if (name.empty()) {
      name = names_.Add(absl::StrCat(p_.buffers[expr.buffer].name, "_lanes"));
      const std::string type = dialect_.VectorType(exprs_.ValueType(expr.dtype),
                                                   static_cast<int>(p_.atoms[lane].range.extent()));
      lines_.Assign(absl::StrCat("const ", type, " ", name), "=", *load);
    }
    exprs_.NameValue(id, dialect_.Lane(name, index_.NameOf(lane)));
  };
  for (const ExprId value : store.values) visit(value);
}

// Returns the values to store. Names the operands that occur several times.
std::vector<ExprId> CStorePrinter::Combine(const Stmt& store) {
  std::vector<ExprId> values(store.values.begin(), store.values.end());
  if (store.reducer == ir::Reducer::kNone) {
    NameShared(values);
    return values;
  }
  std::vector<ExprId> old;
  for (const ir::BufferId output : store.outputs) {
    old.push_back(p_.pool.Load(output, p_.buffers[output].dtype, store.indices));
  }
  if (values.size() > 1) {
    NameShared(values);
    for (size_t c = 0; c < values.size(); ++c) {
      const ir::Buffer& output = p_.buffers[store.outputs[c]];
      const std::string old_text = exprs_.Print(old[c]).text, text = exprs_.Print(values[c]).text;
      exprs_.NameValue(old[c],
                       Temporary(absl::StrCat("old_", output.name), output.dtype, old_text));
      exprs_.NameValue(values[c], Temporary(absl::StrCat("new_", output.name), output.dtype, text));
    }
  }
  const auto combined = ir::Combine(p_.pool, store.reducer, old, values);
  values.assign(combined.begin(), combined.end());
  NameShared(values);
  return values;
}

void CStorePrinter::PrintElement(const Stmt& store) {
  const DType dtype = p_.buffers[store.outputs[0]].dtype;
  const bool adds = store.reducer == ir::Reducer::kSum || store.reducer == ir::Reducer::kProd;
  if (adds && (dtype == DType::kF32 || dtype == DType::kF64)) {
    NameShared({store.values[0]});
    const std::string element = exprs_.Element(store.outputs[0], store.indices[0], ir::kNoExpr);
    lines_.Assign(element, store.reducer == ir::Reducer::kSum ? "+=" : "*=",
                  exprs_.Print(store.values[0]).text);
    exprs_.ForgetValues();
    return;
  }
  const std::vector<ExprId> values = Combine(store);
  std::vector<std::string> stored;
  for (size_t c = 0; c < values.size(); ++c) {
    const DType memory = p_.buffers[store.outputs[c]].dtype;
    stored.push_back(exprs_.Stored(values[c], memory));
    // All values are computed before the first one is stored.
    if (values.size() == 1 || exprs_.HasName(values[c])) continue;
    std::string name = names_.Add("t");
    lines_.Add("const ", dialect_.TypeName(memory), " ", name, " = ", stored[c], ";");
    stored[c] = std::move(name);
  }
  for (size_t c = 0; c < values.size(); ++c) {
    lines_.Assign(exprs_.Element(store.outputs[c], store.indices[0], ir::kNoExpr), "=", stored[c]);
  }
  exprs_.ForgetValues();
}

// Shuffles move elements as they are in memory.
void CStorePrinter::PrintShuffle(const Stmt& shuffle) {
  for (size_t c = 0; c < shuffle.values.size(); ++c) {
    const ir::Expr& value = p_.pool[shuffle.values[c]];
    const std::string own = exprs_.Element(value.buffer, p_.pool.IndicesOf(value)[0], ir::kNoExpr);
    lines_.Assign(exprs_.Element(shuffle.outputs[c], shuffle.indices[0], ir::kNoExpr), "=",
                  absl::StrCat(prelude_.Use(kShuffle), "(", own, ", ", shuffle.lane_xor, ")"));
  }
}

void CStorePrinter::PrintInTwoLoops(const Stmt& store, AtomId lane, const CText& condition) {
  const std::string& var = index_.NameOf(lane);
  const int64_t lanes = p_.atoms[lane].range.extent();
  std::vector<std::string> results;
  for (const ir::BufferId output : store.outputs) {
    results.push_back(names_.Add(absl::StrCat(p_.buffers[output].name, "_lanes")));
    lines_.Add(dialect_.TypeName(p_.buffers[output].dtype), " ", results.back(), "[", lanes, "];");
  }
  lines_.Add("// All lanes read before the first one writes.");
  OpenLanes(lane);
  if (!condition.text.empty()) lines_.Open("if (", condition.text, ")");
  const std::vector<ExprId> values = Combine(store);
  for (size_t c = 0; c < values.size(); ++c) {
    lines_.Assign(absl::StrCat(results[c], "[", var, "]"), "=",
                  exprs_.Stored(values[c], p_.buffers[store.outputs[c]].dtype));
  }
  exprs_.ForgetValues();
  if (!condition.text.empty()) lines_.Close();
  lines_.Close();
  OpenLanes(lane);
  if (!condition.text.empty()) lines_.Open("if (", condition.text, ")");
  for (size_t c = 0; c < values.size(); ++c) {
    lines_.Add(exprs_.Element(store.outputs[c], store.indices[0], ir::kNoExpr), " = ", results[c],
               "[", var, "];");
  }
  if (!condition.text.empty()) lines_.Close();
  lines_.Close();
}

absl::Status CStorePrinter::Print(lower::StmtId id, AtomId lane) {
  const Stmt store = p_.stmts[id];
  // Separates the conditions that differ between lanes.
  std::vector<ir::Condition> common, own;
  for (const auto* list : {&store.conditions, &store.guards}) {
    for (const ir::Condition& condition : *list) {
      const bool differs = lane != ir::kNoAtom && p_.atoms.DependsOn(condition.index, lane);
      (differs ? own : common).push_back(condition);
    }
  }
  const CText condition = index_.Print(common), lane_condition = index_.Print(own);
  if (condition.text == CIndexPrinter::kNever || lane_condition.text == CIndexPrinter::kNever) {
    return absl::OkStatus();
  }
  if (!condition.text.empty()) lines_.Open("if (", condition.text, ")");
  const bool reduces_lanes = store.reducer != ir::Reducer::kNone &&
                             std::find(store.reduce_vars.begin(), store.reduce_vars.end(), lane) !=
                                 store.reduce_vars.end();
  std::optional<CDialect::Assignment> vector;
  std::optional<CDialect::Assignment> copy;
  if (!store.tensor_vars.empty()) {
    if (lane == ir::kNoAtom) vector = vectors_.Dot(store);
    if (!vector.has_value()) {
      return absl::UnimplementedError(
          "the statement is one instruction, for which there is no C code:\n" + p_.ToText(id));
    }
  }
  if (store.lane_xor > 0 && dialect_.Define(kShuffle).empty()) {
    return absl::UnimplementedError("a shuffle, which this kind of code does not have");
  }
  if (store.is_async && own.empty()) copy = vectors_.CopyAsync(store, lane);
  if (lane != ir::kNoAtom && own.empty() && !reduces_lanes && !copy.has_value()) {
    vector = vectors_.Print(store, lane);
  }
  if (copy.has_value()) {
    lines_.AddIn2(copy->target, copy->value);
  } else if (vector.has_value()) {
    if (vector->target.empty()) {
      lines_.Add(vector->value);
    } else {
      lines_.Assign(vector->target, "=", vector->value);
    }
  } else if (store.lane_xor > 0) {
    PrintShuffle(store);
  } else if (lane == ir::kNoAtom) {
    PrintElement(store);
  } else if (!reduces_lanes && MayInterfere(store, lane)) {
    PrintInTwoLoops(store, lane, lane_condition);
  } else {
    if (reduces_lanes && own.empty()) LoadLanes(store, lane);
    OpenLanes(lane);
    if (!lane_condition.text.empty()) lines_.Open("if (", lane_condition.text, ")");
    PrintElement(store);
    if (!lane_condition.text.empty()) lines_.Close();
    lines_.Close();
  }
  if (!condition.text.empty()) lines_.Close();
  return exprs_.status();
}

}  // namespace hone::codegen
