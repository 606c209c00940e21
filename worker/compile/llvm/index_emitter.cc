#include "worker/compile/llvm/index_emitter.h"

#include <algorithm>

namespace hone::codegen {

using ir::Atom;
using ir::AtomId;
using ir::Index;
using llvm::Value;

// Hoisted values go before the branch that ends the scope's first block.
void IndexEmitter::PushScope() {
  llvm::BasicBlock* next = f_.Block("");
  scopes_.push_back({.insert_before = f_.b.CreateBr(next)});
  f_.b.SetInsertPoint(next);
}

IndexEmitter::Split IndexEmitter::SplitOf(const Index& original) {
  ir::AtomTable& atoms = f_.state.program.atoms;
  // Reduces a floordiv or mod of constants and runtime variables to one of runtime variables alone:
  // values are cached by atom, and the constants change in unrolled loops.
  bool mixed = false;
  for (const ir::IndexTerm& term : original.terms()) {
    if (atoms[term.atom].kind == Atom::Kind::kVar) continue;
    atoms.VisitVars(Index::Of(term.atom), [&](AtomId var) {
      mixed |= variables_[var].kind == Variable::Kind::kConstant;
    });
  }
  Index known;
  const Index index =
      !mixed ? original : atoms.Substitute(original, [&](AtomId var) -> const Index* {
        if (variables_[var].kind != Variable::Kind::kConstant) return nullptr;
        known = Index(variables_[var].constant);
        return &known;
      });
  Split split;
  split.constant = index.constant();
  for (const ir::IndexTerm& term : index.terms()) {
    if (atoms[term.atom].kind == Atom::Kind::kVar) {
      const Variable& variable = variables_[term.atom];
      switch (variable.kind) {
        case Variable::Kind::kConstant:
          split.constant += term.coeff * variable.constant;
          break;
        case Variable::Kind::kLane:
          split.lane += term.coeff;
          break;
        case Variable::Kind::kRuntime:
        case Variable::Kind::kUnset:
          split.runtime += Index::Of(term.atom, term.coeff);
          break;
      }
      continue;
    }
    bool lane = false, runtime = false;
    atoms.VisitVars(Index::Of(term.atom), [&](AtomId var) {
      lane |= variables_[var].kind == Variable::Kind::kLane;
      runtime |= variables_[var].kind == Variable::Kind::kRuntime;
    });
    if (lane) {
      split.irregular = true;
    } else if (runtime) {
      split.runtime += Index::Of(term.atom, term.coeff);
    } else {
      std::vector<int64_t> values(atoms.size(), 0);
      atoms.VisitVars(Index::Of(term.atom),
                      [&](AtomId var) { values[var] = variables_[var].constant; });
      split.constant += term.coeff * atoms.Evaluate(Index::Of(term.atom), values);
    }
  }
  return split;
}

int64_t IndexEmitter::StepOf(const Index& index, AtomId var, int64_t value) {
  const int64_t base = SplitOf(index).constant;
  SetConstant(var, value);
  const int64_t moved = SplitOf(index).constant;
  SetConstant(var, 0);
  return moved - base;
}

int IndexEmitter::DepthOf(AtomId atom) const {
  int depth = 0;
  f_.state.program.atoms.VisitVars(Index::Of(atom), [&](AtomId var) {
    const Variable& variable = variables_[var];
    if (variable.kind == Variable::Kind::kRuntime) depth = std::max(depth, variable.depth);
  });
  return depth;
}

Value* IndexEmitter::Quotient(const Atom& atom, Value* argument, Value* divisor) {
  llvm::IRBuilder<>& b = f_.b;
  const bool mod = atom.kind == Atom::Kind::kMod;
  if (f_.state.program.atoms.RangeOf(atom.argument).min >= 0) {
    return mod ? b.CreateURem(argument, divisor) : b.CreateUDiv(argument, divisor);
  }
  // A mod is not negative, and floor(x / d) = (x − (x mod d)) / d.
  Value* remainder = b.CreateSRem(argument, divisor);
  Value* zero = llvm::Constant::getNullValue(remainder->getType());
  remainder =
      b.CreateSelect(b.CreateICmpSLT(remainder, zero), b.CreateAdd(remainder, divisor), remainder);
  return mod ? remainder : b.CreateSDiv(b.CreateSub(argument, remainder), divisor);
}

Value* IndexEmitter::AtomValue(AtomId atom) {
  const Atom entry = f_.state.program.atoms[atom];
  if (entry.kind != Atom::Kind::kVar) {
    Value* const argument = Scalar(entry.argument);
    if (f_.state.machine->DividesI64() || !FitsInt32(Index::Of(atom)))
      return Quotient(entry, argument, f_.I64(entry.divisor));
    auto* const i32 = f_.b.getInt32Ty();
    Value* const narrow = Quotient(entry, f_.b.CreateTrunc(argument, i32),
                                   f_.b.getInt32(static_cast<uint32_t>(entry.divisor)));
    return f_.b.CreateSExt(narrow, f_.b.getInt64Ty());
  }
  const Variable& variable = variables_[atom];
  return variable.kind == Variable::Kind::kConstant ? f_.I64(variable.constant) : variable.value;
}

Value* IndexEmitter::RuntimeValue(const Index& runtime) {
  if (runtime.terms().empty()) return nullptr;
  // Sorts the terms by scope: sums of outer terms are computed once, outside.
  absl::InlinedVector<std::pair<int, ir::IndexTerm>, 8> terms;
  for (const ir::IndexTerm& term : runtime.terms()) terms.emplace_back(DepthOf(term.atom), term);
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const llvm::IRBuilderBase::InsertPointGuard guard(f_.b);
  Value* sum = nullptr;
  Index partial;
  for (size_t i = 0; i < terms.size();) {
    const int depth = terms[i].first;
    Scope* scope = &scopes_[depth];
    Index next = partial;
    size_t last = i;
    for (; last < terms.size() && terms[last].first == depth; ++last)
      next += Index::Of(terms[last].second.atom, terms[last].second.coeff);
    const auto known = std::find_if(scope->values.begin(), scope->values.end(),
                                    [&](const auto& entry) { return entry.first == next; });
    if (known != scope->values.end()) {
      sum = known->second;
    } else {
      f_.b.SetInsertPoint(scope->insert_before);
      for (; i < last; ++i) {
        Value* value = AtomValue(terms[i].second.atom);
        f_.b.SetInsertPoint(scopes_[depth].insert_before);
        if (terms[i].second.coeff != 1)
          value = f_.b.CreateNSWMul(value, f_.I64(terms[i].second.coeff));
        sum = sum == nullptr ? value : f_.b.CreateNSWAdd(sum, value);
      }
      scopes_[depth].values.emplace_back(next, sum);
    }
    i = last;
    partial = next;
  }
  return sum;
}

Value* IndexEmitter::Scalar(const Index& index) {
  const Split split = SplitOf(index);
  Value* runtime = RuntimeValue(split.runtime);
  if (runtime == nullptr) return f_.I64(split.constant);
  return split.constant == 0 ? runtime : f_.b.CreateNSWAdd(runtime, f_.I64(split.constant));
}

bool IndexEmitter::FitsInt32(const Index& index) const {
  constexpr int64_t kLimit = int64_t{1} << 30;
  const ir::AtomTable& atoms = f_.state.program.atoms;
  const auto fits = [&](const Index& i) {
    const ir::Range range = atoms.RangeOf(i);
    return range.min > -kLimit && range.max < kLimit;
  };
  return fits(index) &&
         std::all_of(index.terms().begin(), index.terms().end(), [&](const ir::IndexTerm& term) {
           const Atom& atom = atoms[term.atom];
           return atom.kind == Atom::Kind::kVar ||
                  (atom.divisor < kLimit && FitsInt32(atom.argument));
         });
}

Value* IndexEmitter::Vector(const Index& index) {
  return VectorIn(index, FitsInt32(index) ? f_.b.getInt32Ty() : f_.b.getInt64Ty());
}

// Intermediate sums and products may overflow the type. Wrapped values are right, because the
// result fits.
Value* IndexEmitter::VectorIn(const Index& index, llvm::Type* integer) {
  llvm::IRBuilder<>& b = f_.b;
  const auto number = [&](int64_t value) {
    return b.CreateVectorSplat(f_.lanes, llvm::ConstantInt::get(integer, value, true));
  };
  Index regular(index.constant());
  Value* sum = nullptr;
  for (const ir::IndexTerm& term : index.terms()) {
    const Atom entry = f_.state.program.atoms[term.atom];
    if (!SplitOf(Index::Of(term.atom)).irregular) {
      regular += Index::Of(term.atom, term.coeff);
      continue;
    }
    Value* value = Quotient(entry, VectorIn(entry.argument, integer), number(entry.divisor));
    value = b.CreateMul(value, number(term.coeff));
    sum = sum == nullptr ? value : b.CreateAdd(sum, value);
  }
  const Split split = SplitOf(regular);
  std::vector<llvm::Constant*> numbers;
  for (int64_t lane = 0; lane < f_.lanes; ++lane)
    numbers.push_back(llvm::ConstantInt::get(integer, split.constant + lane * split.lane, true));
  Value* lanes = llvm::ConstantVector::get(numbers);
  if (Value* runtime = RuntimeValue(split.runtime)) {
    lanes = b.CreateAdd(b.CreateVectorSplat(f_.lanes, b.CreateTrunc(runtime, integer)), lanes);
  }
  return sum == nullptr ? lanes : b.CreateAdd(sum, lanes);
}

std::optional<std::vector<int64_t>> IndexEmitter::LaneTable(const Index& index, Split& base) {
  const ir::AtomTable& atoms = f_.state.program.atoms;
  base = {};
  base.constant = index.constant();
  std::vector<int64_t> table(f_.lanes, 0), values(atoms.size(), 0);
  for (const ir::IndexTerm& term : index.terms()) {
    const Index part = Index::Of(term.atom, term.coeff);
    const Split split = SplitOf(part);
    if (!split.irregular) {
      base.runtime += split.runtime;
      base.constant += split.constant;
      for (int64_t lane = 0; lane < f_.lanes; ++lane) table[lane] += lane * split.lane;
      continue;
    }
    AtomId lane_var = ir::kNoAtom;
    bool known = true;
    atoms.VisitVars(part, [&](AtomId var) {
      const Variable& variable = variables_[var];
      if (variable.kind == Variable::Kind::kLane) lane_var = var;
      known &= variable.kind == Variable::Kind::kLane || variable.kind == Variable::Kind::kConstant;
      values[var] = variable.constant;
    });
    if (!known) return std::nullopt;
    for (int64_t lane = 0; lane < f_.lanes; ++lane) {
      values[lane_var] = lane;
      table[lane] += atoms.Evaluate(part, values);
    }
  }
  return table;
}

}  // namespace hone::codegen
