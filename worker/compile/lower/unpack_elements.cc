#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "worker/compile/lower/lower.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {
namespace {

using ir::AtomId;
using ir::BufferId;
using ir::DType;
using ir::ExprId;
using ir::Index;
using ir::Op;

constexpr int kPerWord = 8;  // elements of 4 bits in a word of 32

// Finds copies of packed constants in constants that are packed ahead of time, and gives them words
// of eight elements. A copy is a buffer of i8 or u8 that one nest of the kernel that packs writes.
class ConstantPacker {
 public:
  explicit ConstantPacker(LoweredProgram& program)
      : p_(program), copies_(program.buffers.size()), users_(program.buffers.size()) {}

  void Run() {
    if (p_.IsForGpu() || p_.kernels[0].name != ir::kPrepackKernel) return;
    for (size_t k = 0; k < p_.kernels.size(); ++k) Visit(p_.kernels[k].body, k == 0);
    for (size_t b = 0; b < copies_.size(); ++b) {
      const auto id = static_cast<BufferId>(b);
      if (!copies_[b].has_value() || refused_.contains(id) || !PackStore(id)) continue;
      ir::Buffer& buffer = p_.buffers[b];
      words_.insert(id);
      buffer.dtype = DType::kI32;
      buffer.shape.back() /= kPerWord;
    }
    if (words_.empty()) return;
    for (const BufferId buffer : words_) {
      for (const User& user : users_[buffer]) Unpack(user);
    }
  }

 private:
  struct User {
    StmtId store;
    std::vector<StmtId> loops;  // around it, outermost first
  };
  // A float that is value * factor. The factor is a power of 2, or kNoExpr if it is 1.
  struct Scaled {
    ExprId value;
    ExprId factor = ir::kNoExpr;
  };

  bool IsCandidate(BufferId id) const {
    const ir::Buffer& buffer = p_.buffers[id];
    return (buffer.dtype == DType::kI8 || buffer.dtype == DType::kU8) && !buffer.input &&
           !buffer.output && !buffer.shape.empty() && buffer.shape.back() % kPerWord == 0 &&
           buffer.aligns.empty();
  }

  // Fills copies_, users_ and refused_.
  void Visit(StmtId id, bool packs) {
    if (id == kNoStmt) return;
    const Stmt& stmt = p_.stmts[id];
    if (stmt.kind == Stmt::Kind::kStore) return VisitStore(id, packs);
    const bool loop = stmt.kind == Stmt::Kind::kFor;
    if (loop) loops_.push_back(id);
    for (const StmtId child : std::vector<StmtId>(stmt.children)) Visit(child, packs);
    if (loop) loops_.pop_back();
  }

  void VisitStore(StmtId id, bool packs) {
    const Stmt& stmt = p_.stmts[id];
    const bool tensor = !stmt.tensor_vars.empty() || IntrinsicOf(stmt) != nullptr;
    for (const BufferId output : stmt.outputs) {
      if (!written_.insert(output).second || !packs || tensor || !IsCandidate(output) ||
          !IsCopy(stmt)) {
        refused_.insert(output);
      }
      copies_[output] = User{id, loops_};
    }
    for (const ExprId value : stmt.values) {
      p_.pool.VisitLoads(value, [&](const ir::Expr& load) {
        if (load.gathered >= 0 || tensor) refused_.insert(load.buffer);
        std::vector<User>& users = users_[load.buffer];
        if (users.empty() || users.back().store != id) users.push_back({id, loops_});
      });
    }
  }

  // Whether the store copies an element of a packed input wherever it runs.
  bool IsCopy(const Stmt& stmt) const {
    if (stmt.outputs.size() != 1 || stmt.reducer != ir::Reducer::kNone ||
        !stmt.conditions.empty() || !stmt.guards.empty()) {
      return false;
    }
    const ir::Expr& value = p_.pool[stmt.values[0]];
    return value.op == Op::kLoad && ir::IsPacked(p_.buffers[value.buffer].dtype) &&
           value.dtype == p_.buffers[stmt.outputs[0]].dtype;
  }

  // Makes the copy store a word of eight elements of its row at a time. Returns false if no loop
  // runs over these elements.
  bool PackStore(BufferId buffer) {
    const User user = *copies_[buffer];
    const bool is_signed = p_.buffers[buffer].dtype == DType::kI8;
    const ir::IndexList indices = p_.stmts[user.store].indices;
    for (size_t l = user.loops.size(); l-- > 0;) {
      const StmtId loop = user.loops[l];
      const AtomId var = p_.stmts[loop].var;
      const int64_t extent = p_.stmts[loop].extent;
      const StmtId only = l + 1 < user.loops.size() ? user.loops[l + 1] : user.store;
      if (p_.stmts[loop].children != std::vector<StmtId>{only}) return false;
      if (extent % kPerWord != 0) continue;
      const AtomId words = p_.atoms.AddVar(p_.atoms[var].name, extent / kPerWord);
      const auto at = [&](const Index& index, int64_t element) {
        const Index inside =
            extent == kPerWord ? Index(element) : Index::Of(words, kPerWord) + element;
        return p_.atoms.Substitute(index, [&](AtomId id) { return id == var ? &inside : nullptr; });
      };
      ir::IndexList word;
      bool found = true;
      for (int64_t e = 0; e < kPerWord && found; ++e) {
        ir::IndexList element;
        for (const Index& index : indices) element.push_back(at(index, e));
        found = p_.atoms.Mod(element.back(), kPerWord) == Index(e);
        element.back() = p_.atoms.FloorDiv(element.back(), kPerWord);
        if (e == 0) word = element;
        found &= element == word;
      }
      if (!found) continue;
      ExprId value = ir::kNoExpr;
      for (int64_t e = 0; e < kPerWord; ++e) {
        const ExprId element = p_.pool.Rewrite(
            p_.stmts[user.store].values[0], [](const ir::Expr&) { return ir::kNoExpr; },
            [&](const Index& index) { return at(index, e); });
        const ExprId field = Field(element, e, is_signed);
        value = value == ir::kNoExpr ? field : p_.pool.Binary(Op::kAdd, value, field);
      }
      p_.stmts[user.store].values[0] = value;
      p_.stmts[user.store].indices = word;
      if (extent == kPerWord) {
        const Stmt inner = p_.stmts[p_.stmts[loop].children[0]];
        p_.stmts[loop] = inner;
      } else {
        p_.stmts[loop].var = words;
        p_.stmts[loop].extent /= kPerWord;
      }
      return true;
    }
    return false;
  }

  ExprId Whole(int64_t value) { return p_.pool.Const(DType::kI32, value); }

  // How an element is stored: in the top bits of the word with its sign, and below as a number from
  // 0 on. Then the bits of an element are, as a whole number, the element times a power of 2 plus a
  // constant:
  //   i4: the element + 8, in the top bits the element;  u4: the element, in the top bits the
  //   element - 8
  ExprId Field(ExprId element, int64_t place, bool is_signed) {
    const bool shifted = (place < kPerWord - 1) == is_signed;
    element = p_.pool.Cast(DType::kI32, element);
    if (shifted) element = p_.pool.Binary(Op::kAdd, element, Whole(8));
    element = p_.pool.Binary(Op::kAnd, element, Whole(15));
    return p_.pool.Binary(Op::kShiftLeft, element, Whole(4 * place));
  }

  void Unpack(const User& user) {
    statics_.clear();
    for (const StmtId loop : user.loops) {
      if (LoweredProgram::IsStatic(p_.stmts[loop].loop)) statics_.insert(p_.stmts[loop].var);
    }
    for (size_t c = 0; c < p_.stmts[user.store].values.size(); ++c) {
      const ExprId value = Resolved(Unpacked(p_.stmts[user.store].values[c]));
      p_.stmts[user.store].values[c] = value;
    }
  }

  // The expression, if it loads an element of a copy that is packed.
  std::optional<ir::Expr> PackedLoad(ExprId id) const {
    const ir::Expr& expr = p_.pool[id];
    if (expr.op != Op::kLoad || !words_.contains(expr.buffer) || expr.dtype == DType::kI32) {
      return std::nullopt;
    }
    return expr;
  }

  Index PlaceOf(const ir::Expr& load) {
    return p_.atoms.Mod(p_.pool.IndicesOf(load).back(), kPerWord);
  }
  ExprId Word(const ir::Expr& load) {
    ir::IndexList indices = p_.pool.IndicesOf(load);
    indices.back() = p_.atoms.FloorDiv(indices.back(), kPerWord);
    return p_.pool.Load(load.buffer, DType::kI32, std::move(indices));
  }
  ExprId Bits(const Index& index) { return p_.pool.Cast(DType::kI32, p_.pool.OfIndex(index)); }
  ExprId InTopBits(const Index& place, ExprId then, ExprId otherwise) {
    const ExprId below =
        p_.pool.Binary(Op::kLess, p_.pool.OfIndex(place), p_.pool.Const(DType::kI64, kPerWord - 1));
    return p_.pool.Select(below, otherwise, then);
  }
  // Whether the element has the same place in its word whenever the code of the statement runs.
  bool HasKnownPlace(const Index& place) const {
    bool known = true;
    p_.atoms.VisitVars(place, [&](AtomId var) { known &= statics_.contains(var); });
    return known;
  }

  // The element, by two shifts.
  ExprId Element(const ir::Expr& load) {
    const Index place = PlaceOf(load);
    ExprId value =
        p_.pool.Binary(Op::kShiftLeft, Word(load), Bits(Index(4 * (kPerWord - 1)) - place * 4));
    const ExprId least = Whole(int64_t{-1} << 31);
    value = p_.pool.Binary(Op::kAdd, value, InTopBits(place, Whole(0), least));
    value = p_.pool.Binary(Op::kShiftRight, value, Whole(28));
    if (load.dtype == DType::kU8) value = p_.pool.Binary(Op::kAdd, value, Whole(8));
    return p_.pool.Cast(load.dtype, value);
  }

  // The element minus an expression, or minus nothing, as a float, by one mask: lanes with
  // consecutive elements take their bits from one word.
  Scaled Float(const ir::Expr& load, ExprId minus) {
    const Index place = PlaceOf(load), shift = place * 4;
    ir::ExprPool& pool = p_.pool;
    const ExprId mask = pool.Binary(Op::kShiftLeft, Whole(15), Bits(shift));
    const ExprId bits = pool.Cast(DType::kF32, pool.Binary(Op::kAnd, Word(load), mask));
    const auto power = [&](const Index& exponent) {
      return pool.Cast(DType::kF32, pool.Binary(Op::kShiftLeft, Whole(1), Bits(exponent)));
    };
    const ExprId zero = pool.Const(DType::kF32, 0.0);
    const ExprId eight = pool.Binary(Op::kMul, power(shift), pool.Const(DType::kF32, 8.0));
    ExprId added = load.dtype == DType::kI8
                       ? InTopBits(place, zero, eight)
                       : InTopBits(place, pool.Const(DType::kF32, -0x1p31), zero);
    if (minus != ir::kNoExpr) {
      const ExprId scaled = pool.Binary(Op::kMul, pool.Cast(DType::kF32, minus), power(shift));
      added = pool.Binary(Op::kAdd, added, scaled);
    }
    const ExprId factor =
        pool.Binary(Op::kMul, power(Index(28) - shift), pool.Const(DType::kF32, 0x1p-28));
    return {pool.Binary(Op::kSub, bits, added), factor};
  }

  ExprId Resolved(Scaled scaled) {
    if (scaled.factor == ir::kNoExpr) return scaled.value;
    return p_.pool.Binary(Op::kMul, scaled.value, scaled.factor);
  }

  Scaled Unpacked(ExprId id) {
    const ir::Expr expr = p_.pool[id];
    if (const std::optional<ir::Expr> load = PackedLoad(id)) return {Element(*load)};
    if (expr.op == Op::kCast && expr.dtype == DType::kF32) {
      ExprId element = expr.a, minus = ir::kNoExpr;
      const ir::Expr inner = p_.pool[expr.a];
      if (inner.op == Op::kSub && inner.dtype == DType::kI32) {
        // Both operands have at most 8 bits, so that their difference is exact as a float, too.
        const ir::Expr left = p_.pool[inner.a], right = p_.pool[inner.b];
        const auto is_byte = [&](const ir::Expr& e) {
          return e.op == Op::kCast &&
                 (p_.pool[e.a].dtype == DType::kI8 || p_.pool[e.a].dtype == DType::kU8);
        };
        if (is_byte(left) && is_byte(right)) {
          element = left.a;
          minus = right.a;
        }
      }
      const std::optional<ir::Expr> load = PackedLoad(element);
      if (load.has_value() && HasKnownPlace(PlaceOf(*load))) {
        if (minus != ir::kNoExpr) minus = Resolved(Unpacked(minus));
        return Float(*load, minus);
      }
    }
    if (expr.a == ir::kNoExpr) return {id};
    const Scaled a = Unpacked(expr.a);
    const Scaled b = expr.b == ir::kNoExpr ? Scaled{ir::kNoExpr} : Unpacked(expr.b);
    const Scaled c = expr.c == ir::kNoExpr ? Scaled{ir::kNoExpr} : Unpacked(expr.c);
    if (expr.op == Op::kMul && (a.factor == ir::kNoExpr) != (b.factor == ir::kNoExpr)) {
      // The other operand, such as the scale of a block, is often the same for several elements.
      const Scaled& packed = a.factor != ir::kNoExpr ? a : b;
      const Scaled& other = a.factor != ir::kNoExpr ? b : a;
      return {p_.pool.Binary(Op::kMul, packed.value,
                             p_.pool.Binary(Op::kMul, other.value, packed.factor))};
    }
    const auto resolved = [&](const Scaled& scaled) {
      return scaled.value == ir::kNoExpr ? ir::kNoExpr : Resolved(scaled);
    };
    const ExprId x = resolved(a), y = resolved(b), z = resolved(c);
    if (x == expr.a && y == expr.b && z == expr.c) return {id};
    return {p_.pool.WithOperands(id, x, y, z)};
  }

  LoweredProgram& p_;
  std::vector<std::optional<User>> copies_;  // by buffer: a store that writes it
  std::vector<std::vector<User>> users_;     // by buffer
  std::set<BufferId> written_, refused_;
  std::set<BufferId> words_;  // the packed copies
  std::vector<StmtId> loops_;
  std::set<AtomId> statics_;  // the variables of static loops around a statement
};

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

absl::Status PackConstants(LoweredProgram& program) {
  ConstantPacker(program).Run();
  return absl::OkStatus();
}

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
