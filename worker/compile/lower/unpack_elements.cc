#include "worker/compile/lower/passes.h"

namespace hone::lower {
namespace {

using ir::ExprId;
using ir::Index;
using ir::Op;

// Loads the byte of a packed element, and shifts the element to the top of the byte and back, which
// extends its sign.
ExprId UnpackedLoad(LoweredProgram& p, const ir::Expr& load) {
  const Index offset = p.pool.IndicesOf(load)[0];
  const Index byte = p.atoms.FloorDiv(offset, 2);
  Index above(4);  // bits above the element
  above.AddScaled(p.atoms.Mod(offset, 2), -4);
  ExprId value;
  if (load.gathered < 0) {
    value = p.pool.Load(load.buffer, load.dtype, {byte});
  } else {  // rows at computed indices have an even number of elements
    const ExprId one = p.pool.Const(ir::DType::kI64, 1);
    value = p.pool.Gather(load.buffer, load.dtype, {byte}, 0,
                          p.pool.Binary(Op::kShiftRight, load.a, one));
  }
  const ExprId count = p.pool.Cast(load.dtype, p.pool.OfIndex(above));
  value = p.pool.Binary(Op::kShiftLeft, value, count);
  return p.pool.Binary(Op::kShiftRight, value, p.pool.Const(load.dtype, 4));
}

}  // namespace

void UnpackElements(LoweredProgram& program) {
  bool has_packed = false;
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    if (!ir::IsPacked(program.buffers[b].dtype)) continue;
    has_packed = true;
    Storage& storage = program.storage[b];
    storage.packed_dtype = program.buffers[b].dtype;
    storage.elements = (storage.elements + 1) / 2;
  }
  if (!has_packed) return;
  for (Stmt& stmt : program.stmts) {
    for (ExprId& value : stmt.values) {
      value = program.pool.Rewrite(
          value,
          [&](const ir::Expr& load) {
            return ir::IsPacked(program.buffers[load.buffer].dtype) ? UnpackedLoad(program, load)
                                                                    : ir::kNoExpr;
          },
          [](const Index& index) { return index; });
    }
  }
  for (ir::Buffer& buffer : program.buffers) buffer.dtype = ir::LoadedAs(buffer.dtype);
}

}  // namespace hone::lower
