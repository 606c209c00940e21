// Addresses: index values, hoisted to the loops that they depend on.
#include <algorithm>

#include "common/target/kernel_abi.h"
#include "worker/codegen/function_emitter.h"

namespace hone::codegen {

using ir::Atom;
using ir::AtomId;
using ir::Index;
using llvm::Value;
using lower::Storage;

FunctionEmitter::Split FunctionEmitter::SplitIndex(const Index& original) {
  ir::AtomTable& atoms = state_.program.atoms;
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

int FunctionEmitter::DepthOf(AtomId atom) const {
  int depth = 0;
  state_.program.atoms.VisitVars(Index::Of(atom), [&](AtomId var) {
    if (variables_[var].kind == Variable::Kind::kRuntime)
      depth = std::max(depth, variables_[var].depth);
  });
  return depth;
}

Value* FunctionEmitter::AtomValue(AtomId atom) {
  const Atom& entry = state_.program.atoms[atom];
  if (entry.kind == Atom::Kind::kVar) {
    return variables_[atom].kind == Variable::Kind::kConstant ? I64(variables_[atom].constant)
                                                              : variables_[atom].value;
  }
  const Index argument_index = entry.argument;
  Value* argument = ScalarIndex(argument_index);
  Value* divisor = I64(entry.divisor);
  const bool nonnegative = state_.program.atoms.RangeOf(argument_index).min >= 0;
  if (entry.kind == Atom::Kind::kFloorDiv) {
    if (nonnegative) return builder_.CreateUDiv(argument, divisor);
    // floor(x / d) = (x − (x mod d)) / d with a non-negative mod.
    Value* remainder = builder_.CreateSRem(argument, divisor);
    Value* fixed = builder_.CreateSelect(builder_.CreateICmpSLT(remainder, I64(0)),
                                         builder_.CreateAdd(remainder, divisor), remainder);
    return builder_.CreateSDiv(builder_.CreateSub(argument, fixed), divisor);
  }
  if (nonnegative) return builder_.CreateURem(argument, divisor);
  Value* remainder = builder_.CreateSRem(argument, divisor);
  return builder_.CreateSelect(builder_.CreateICmpSLT(remainder, I64(0)),
                               builder_.CreateAdd(remainder, divisor), remainder);
}

Value* FunctionEmitter::RuntimeValue(const Index& runtime) {
  if (runtime.terms().empty()) return nullptr;
  // Terms by scope: sums of outer terms are computed once, outside.
  absl::InlinedVector<std::pair<int, ir::IndexTerm>, 8> terms;
  for (const ir::IndexTerm& term : runtime.terms()) terms.emplace_back(DepthOf(term.atom), term);
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto saved = builder_.saveIP();
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
      builder_.SetInsertPoint(scope->insert_before);
      for (; i < last; ++i) {
        Value* value = AtomValue(terms[i].second.atom);
        builder_.SetInsertPoint(scopes_[depth].insert_before);
        if (terms[i].second.coeff != 1)
          value = builder_.CreateNSWMul(value, I64(terms[i].second.coeff));
        sum = sum == nullptr ? value : builder_.CreateNSWAdd(sum, value);
      }
      scopes_[depth].values.emplace_back(next, sum);
    }
    i = last;
    partial = next;
  }
  builder_.restoreIP(saved);
  return sum;
}

Value* FunctionEmitter::ScalarIndex(const Index& index) {
  const Split split = SplitIndex(index);
  Value* runtime = RuntimeValue(split.runtime);
  if (runtime == nullptr) return I64(split.constant);
  return split.constant == 0 ? runtime : builder_.CreateNSWAdd(runtime, I64(split.constant));
}

bool FunctionEmitter::FitsInt32(const Index& index) const {
  constexpr int64_t kLimit = int64_t{1} << 30;
  const ir::AtomTable& atoms = state_.program.atoms;
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

Value* FunctionEmitter::VectorIndex(const Index& index) {
  return VectorIndexIn(index, FitsInt32(index) ? builder_.getInt32Ty() : builder_.getInt64Ty());
}

// Intermediate sums and products may overflow the type. Wrapped values are right, because the
// result fits.
Value* FunctionEmitter::VectorIndexIn(const Index& index, llvm::Type* integer) {
  const auto number = [&](int64_t value) {
    return builder_.CreateVectorSplat(lanes_, llvm::ConstantInt::get(integer, value, true));
  };
  Index regular(index.constant());
  Value* sum = nullptr;
  for (const ir::IndexTerm& term : index.terms()) {
    const Atom entry = state_.program.atoms[term.atom];
    if (!SplitIndex(Index::Of(term.atom)).irregular) {
      regular += Index::Of(term.atom, term.coeff);
      continue;
    }
    const bool nonnegative = state_.program.atoms.RangeOf(entry.argument).min >= 0;
    Value* argument = VectorIndexIn(entry.argument, integer);
    Value* divisor = number(entry.divisor);
    const bool mod = entry.kind == Atom::Kind::kMod;
    Value* value = nullptr;
    if (nonnegative) {
      value = mod ? builder_.CreateURem(argument, divisor) : builder_.CreateUDiv(argument, divisor);
    } else {
      Value* remainder = builder_.CreateSRem(argument, divisor);
      remainder = builder_.CreateSelect(builder_.CreateICmpSLT(remainder, number(0)),
                                        builder_.CreateAdd(remainder, divisor), remainder);
      value =
          mod ? remainder : builder_.CreateSDiv(builder_.CreateSub(argument, remainder), divisor);
    }
    value = builder_.CreateMul(value, number(term.coeff));
    sum = sum == nullptr ? value : builder_.CreateAdd(sum, value);
  }
  const Split split = SplitIndex(regular);
  std::vector<llvm::Constant*> numbers;
  for (int64_t lane = 0; lane < lanes_; ++lane)
    numbers.push_back(llvm::ConstantInt::get(integer, split.constant + lane * split.lane, true));
  Value* lanes = llvm::ConstantVector::get(numbers);
  if (Value* runtime = RuntimeValue(split.runtime)) {
    lanes = builder_.CreateAdd(
        builder_.CreateVectorSplat(lanes_, builder_.CreateTrunc(runtime, integer)), lanes);
  }
  return sum == nullptr ? lanes : builder_.CreateAdd(sum, lanes);
}

Value* FunctionEmitter::BasePointer(ir::BufferId buffer) {
  if (const auto known = bases_.find(buffer); known != bases_.end()) return known->second;
  const lower::LoweredProgram& program = state_.program;
  const Storage& storage = program.storage[buffer];
  const auto saved = builder_.saveIP();
  builder_.SetInsertPoint(scopes_[0].insert_before);
  const auto slot = [&](int position) {
    Value* place =
        builder_.CreateConstInBoundsGEP1_64(builder_.getInt64Ty(), context_argument_, position);
    return builder_.CreateLoad(builder_.getPtrTy(), place);
  };
  const auto plus = [&](Value* base, Value* bytes) {
    return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), base, bytes);
  };
  Value* base = nullptr;
  switch (storage.kind) {
    case Storage::Kind::kArgument:
      base = slot(storage.position);
      break;
    case Storage::Kind::kPacked:
      base = plus(slot(state_.PackedSlot()), I64(storage.offset_bytes));
      break;
    case Storage::Kind::kWorkspace:
      base = plus(slot(state_.WorkspaceSlot()), I64(storage.offset_bytes));
      break;
    case Storage::Kind::kThread: {
      Value* own = builder_.CreateMul(thread_, I64(program.thread_stride_bytes));
      base = plus(slot(state_.WorkspaceSlot()),
                  builder_.CreateAdd(own, I64(program.thread_offset_bytes + storage.offset_bytes)));
      break;
    }
    case Storage::Kind::kStack: {
      auto* type = llvm::ArrayType::get(convert_.MemoryType(program.buffers[buffer].dtype),
                                        storage.elements);
      auto* memory = builder_.CreateAlloca(type);
      memory->setAlignment(llvm::Align(target::kBufferAlignment));
      base = memory;
      break;
    }
    case Storage::Kind::kRegister:
    case Storage::Kind::kUnused:
      break;
  }
  builder_.restoreIP(saved);
  bases_[buffer] = base;
  return base;
}

Value* FunctionEmitter::Address(ir::BufferId buffer, const Split& split) {
  llvm::Type* type = convert_.MemoryType(state_.program.buffers[buffer].dtype);
  Value* base = BasePointer(buffer);
  // One pointer per stream: the runtime part moves it, and constants become displacements.
  if (Value* runtime = RuntimeValue(split.runtime))
    base = builder_.CreateInBoundsGEP(type, base, runtime);
  return split.constant == 0 ? base
                             : builder_.CreateConstInBoundsGEP1_64(type, base, split.constant);
}

llvm::AllocaInst* FunctionEmitter::RegisterSlot(ir::BufferId buffer, int64_t offset) {
  llvm::AllocaInst*& slot = registers_[{buffer, offset}];
  if (slot == nullptr) {
    const auto saved = builder_.saveIP();
    builder_.SetInsertPoint(scopes_[0].insert_before);
    slot = builder_.CreateAlloca(ValueType(state_.program.buffers[buffer].dtype));
    builder_.restoreIP(saved);
  }
  return slot;
}

}  // namespace hone::codegen
