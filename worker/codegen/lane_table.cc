// Irregular lanes at known distances: rows that a layout interleaves, such as four rows of bytes
// for a dot product of groups of four.
#include <algorithm>

#include "worker/codegen/function_emitter.h"

namespace hone::codegen {

using ir::Atom;
using ir::AtomId;
using ir::Index;
using llvm::Value;

std::optional<std::vector<int64_t>> FunctionEmitter::LaneTable(const Index& offset, Split& base) {
  const ir::AtomTable& atoms = state_.program.atoms;
  base = {};
  base.constant = offset.constant();
  std::vector<int64_t> table(lanes_, 0), values(atoms.size(), 0);
  for (const ir::IndexTerm& term : offset.terms()) {
    const Index index = Index::Of(term.atom, term.coeff);
    const Split split = SplitIndex(index);
    if (!split.irregular) {
      base.runtime += split.runtime;
      base.constant += split.constant;
      for (int64_t lane = 0; lane < lanes_; ++lane) table[lane] += lane * split.lane;
      continue;
    }
    AtomId lane_var = ir::kNoAtom;
    bool known = true;
    atoms.VisitVars(index, [&](AtomId var) {
      const Variable& variable = variables_[var];
      if (variable.kind == Variable::Kind::kLane) lane_var = var;
      known &= variable.kind == Variable::Kind::kLane || variable.kind == Variable::Kind::kConstant;
      values[var] = variable.constant;
    });
    if (!known) return std::nullopt;
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      values[lane_var] = lane;
      table[lane] += atoms.Evaluate(index, values);
    }
  }
  return table;
}

Value* FunctionEmitter::LoadInterleaved(ir::BufferId buffer, const Index& offset,
                                        llvm::IntegerType* scalar) {
  constexpr int64_t kMaxWordBits = 32;
  Split base;
  const std::optional<std::vector<int64_t>> table = LaneTable(offset, base);
  if (!table.has_value()) return nullptr;
  const int64_t bits = scalar->getBitWidth();
  for (int64_t rows = 2; rows * bits <= kMaxWordBits && lanes_ % rows == 0; rows *= 2) {
    bool interleaved = true;
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      interleaved &= (*table)[lane] == (*table)[lane % rows] + lane / rows;
    }
    if (!interleaved) continue;
    // Each row is widened to words and shifted to its position in them.
    const int64_t columns = lanes_ / rows;
    auto* const row_type = llvm::FixedVectorType::get(scalar, columns);
    auto* const words = llvm::FixedVectorType::get(builder_.getIntNTy(rows * bits), columns);
    Value* result = nullptr;
    for (int64_t row = 0; row < rows; ++row) {
      Split at = base;
      at.constant += (*table)[row];
      Value* part = builder_.CreateZExt(
          builder_.CreateAlignedLoad(row_type, Address(buffer, at), llvm::Align(bits / 8)), words);
      part = builder_.CreateShl(part, row * bits);
      result = result == nullptr ? part : builder_.CreateOr(result, part);
    }
    return builder_.CreateBitCast(result, llvm::FixedVectorType::get(scalar, lanes_));
  }
  return nullptr;
}

}  // namespace hone::codegen
