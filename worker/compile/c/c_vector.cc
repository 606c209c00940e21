#include "worker/compile/c/c_vector.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_join.h"
#include "common/target/kernel_abi.h"
#include "worker/compile/lower/layout.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {

using ir::DType;
using ir::Expr;
using ir::ExprId;
using ir::Index;
using ir::Op;
using lower::Storage;
using Space = CDialect::Space;

namespace {

// Returns the symbol of a binary operator that works element by element; "" if it has none.
absl::string_view SymbolOf(Op op) {
  return op == Op::kAdd   ? "+"
         : op == Op::kSub ? "-"
         : op == Op::kMul ? "*"
         : op == Op::kDiv ? "/"
                          : "";
}
absl::string_view FunctionOf(Op op) {
  switch (op) {
    case Op::kAbs:
      return "fabs";
    case Op::kRound:
      return "rint";
    case Op::kExp:
    case Op::kLog:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kTanh:
    case Op::kErf:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
    case Op::kPow:
      return ir::InfoOf(op).name;
    default:
      return "";
  }
}

// The short floats that vectors convert from and to f32.
bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

}  // namespace

bool CVectorPrinter::DependsOnLane(ExprId id) const {
  bool depends = false;
  p_.pool.Visit(id, [&](const Expr& expr) {
    if (expr.indices < 0) return;
    for (const Index& index : p_.pool.IndicesOf(expr)) depends |= p_.atoms.DependsOn(index, lane_);
  });
  return depends;
}

bool CVectorPrinter::IsConsecutive(const Index& offset) const {
  return offset.CoeffOf(lane_) == 1 && !p_.atoms.DependsOn(offset - Index::Of(lane_), lane_);
}

bool CVectorPrinter::IsPrivate(ir::BufferId buffer) const {
  const Storage::Kind kind = p_.storage[buffer].kind;
  return kind == Storage::Kind::kStack || kind == Storage::Kind::kRegister;
}

bool CVectorPrinter::HasVector(ExprId id) const {
  const Expr& expr = p_.pool[id];
  if (exprs_.HasName(id) || ir::AccumulatorOf(expr.dtype) != dtype_) return false;
  if (!DependsOnLane(id)) return true;
  if (expr.op == Op::kLoad) {
    const bool converts = expr.dtype == dtype_ || IsHalf(expr.dtype);
    return expr.gathered < 0 && converts && IsConsecutive(p_.pool.IndicesOf(expr)[0]);
  }
  if (expr.op == Op::kCast) {
    const bool widens = expr.dtype == dtype_ && IsHalf(p_.pool[expr.a].dtype);
    return (widens || IsHalf(expr.dtype)) && HasVector(expr.a);
  }
  const bool has_code = !SymbolOf(expr.op).empty() || !FunctionOf(expr.op).empty() ||
                        expr.op == Op::kNeg || expr.op == Op::kMin || expr.op == Op::kMax;
  return has_code && HasVector(expr.a) && (expr.b == ir::kNoExpr || HasVector(expr.b));
}

CDialect::VectorAccess CVectorPrinter::Access(ir::BufferId buffer, const Index& offset,
                                              const std::string& first) {
  const Storage& storage = p_.storage[buffer];
  const DType dtype = p_.buffers[buffer].dtype;
  const int64_t bytes = int64_t{lanes_} * ir::DTypeBytes(dtype);
  const Space space = storage.kind == Storage::Kind::kShared ? Space::kShared
                      : IsPrivate(buffer)                    ? Space::kPrivate
                                                             : Space::kGlobal;
  const auto is_multiple = [&](int64_t value) { return value % lanes_ == 0; };
  bool aligned = space != Space::kPrivate && storage.offset_bytes % bytes == 0 &&
                 is_multiple(offset.constant()) && bytes <= lower::AlignmentOf(p_, buffer);
  for (const ir::IndexTerm& term : offset.terms()) {
    aligned &= term.atom == lane_ || is_multiple(term.coeff);
  }
  if (aligned && space == Space::kShared) {
    alignments_[buffer] = std::max(alignments_[buffer], bytes);
  }
  return {space, dialect_.TypeName(dtype), lanes_, aligned, first};
}

std::string CVectorPrinter::First(ir::BufferId buffer, const Index& offset) {
  return exprs_.Element(buffer, offset - Index::Of(lane_), ir::kNoExpr);
}

CText CVectorPrinter::Elements(ir::BufferId buffer, const Index& offset) {
  const std::string first = First(buffer, offset);
  CText text{prelude_.UseAllIn(dialect_.Load(Access(buffer, offset, first)))};
  if (text.text[0] == '*') text.binding = CBinding::kUnary;
  return text;
}

CText CVectorPrinter::Load(ir::BufferId buffer, const Index& offset) {
  const CText text = Elements(buffer, offset);
  const DType dtype = p_.buffers[buffer].dtype;
  return IsHalf(dtype) ? CText{Convert(dtype, "_to_float", text.text)} : text;
}

std::string CVectorPrinter::Convert(DType dtype, absl::string_view direction,
                                    absl::string_view text) {
  const std::string function = absl::StrCat(ir::DTypeName(dtype), direction, lanes_);
  return absl::StrCat(prelude_.Use(function), "(", text, ")");
}

// Prints an operand of a function. All operands must be vectors.
std::string CVectorPrinter::Argument(ExprId id) {
  const CText text = Vector(id);
  if (DependsOnLane(id)) return text.text;
  return prelude_.UseAllIn(dialect_.Broadcast(exprs_.ValueType(dtype_), lanes_, text.text));
}

CText CVectorPrinter::Vector(ExprId id) {
  if (!DependsOnLane(id)) return exprs_.Print(id);
  const Expr& expr = p_.pool[id];
  if (expr.op == Op::kLoad) return Load(expr.buffer, p_.pool.IndicesOf(expr)[0]);
  if (expr.op == Op::kCast && !IsHalf(expr.dtype)) return Vector(expr.a);
  if (expr.op == Op::kCast) {
    std::optional<std::string> packed = Packed(id, expr.dtype);
    if (!packed.has_value()) packed = Convert(expr.dtype, "_from_float", Argument(expr.a));
    return {Convert(expr.dtype, "_to_float", *packed)};
  }
  if (expr.op == Op::kNeg) {
    prelude_.Use("operator-");
    return {absl::StrCat("-", Vector(expr.a).Within(CBinding::kPrimary)), CBinding::kUnary};
  }
  if (const absl::string_view symbol = SymbolOf(expr.op); !symbol.empty()) {
    prelude_.Use(absl::StrCat("operator", symbol));
    const bool sum = expr.op == Op::kAdd || expr.op == Op::kSub;
    const std::string a = Vector(expr.a).Within(sum ? CBinding::kSum : CBinding::kProduct);
    const std::string b = Vector(expr.b).Within(sum ? CBinding::kProduct : CBinding::kUnary);
    return {absl::StrCat(a, " ", symbol, " ", b), sum ? CBinding::kSum : CBinding::kProduct};
  }
  const std::string function =
      expr.op == Op::kMin || expr.op == Op::kMax
          ? prelude_.Use(ir::InfoOf(expr.op).name, absl::StrCat(exprs_.ValueType(dtype_), lanes_))
          : prelude_.Use(dialect_.VectorFunction(FunctionOf(expr.op), dtype_));
  const std::string a = Argument(expr.a);
  const std::string b = expr.b == ir::kNoExpr ? "" : absl::StrCat(", ", Argument(expr.b));
  return {absl::StrCat(function, "(", a, b, ")")};
}

ExprId CVectorPrinter::Unwidened(ExprId id) const {
  while (p_.pool[id].op == Op::kCast && p_.pool[id].dtype == DType::kF32 &&
         IsHalf(p_.pool[p_.pool[id].a].dtype)) {
    id = p_.pool[id].a;
  }
  return id;
}

bool CVectorPrinter::IsExact(ExprId id, DType dtype) const {
  id = Unwidened(id);
  const Expr& expr = p_.pool[id];
  switch (expr.op) {
    case Op::kLoad:
    case Op::kCast:
      return expr.dtype == dtype;
    case Op::kConst:
      return ir::CastTo(dtype, expr.value) == expr.value;
    case Op::kMin:
    case Op::kMax:
      return IsExact(expr.a, dtype) && IsExact(expr.b, dtype);
    default:
      return false;
  }
}

std::optional<std::string> CVectorPrinter::PackedCall(absl::string_view operation, DType dtype,
                                                      absl::Span<const ExprId> operands) {
  const std::string function = dialect_.PackedFunction(operation, dtype, lanes_);
  if (function.empty()) return std::nullopt;
  std::vector<std::string> texts;
  for (const ExprId operand : operands) {
    if (!IsExact(operand, dtype)) return std::nullopt;
    std::optional<std::string> text = Packed(operand, dtype);
    if (!text.has_value()) return std::nullopt;
    texts.push_back(*std::move(text));
  }
  return absl::StrCat(prelude_.Use(function), "(", absl::StrJoin(texts, ", "), ")");
}

std::optional<std::string> CVectorPrinter::PackedOperation(ExprId id, DType dtype) {
  id = Unwidened(id);
  if (IsExact(id, dtype)) return Packed(id, dtype);
  const Expr& expr = p_.pool[id];
  if (expr.op == Op::kAdd) {
    for (const auto& [sum, other] : {std::pair(expr.a, expr.b), std::pair(expr.b, expr.a)}) {
      const Expr& product = p_.pool[Unwidened(sum)];
      if (product.op != Op::kMul) continue;
      return PackedCall("fma", dtype, {product.a, product.b, other});
    }
    return PackedCall("add", dtype, {expr.a, expr.b});
  }
  if (expr.op == Op::kSub) return PackedCall("sub", dtype, {expr.a, expr.b});
  if (expr.op == Op::kMul) return PackedCall("mul", dtype, {expr.a, expr.b});
  return std::nullopt;
}

std::optional<std::string> CVectorPrinter::Packed(ExprId id, DType dtype) {
  id = Unwidened(id);
  const Expr& expr = p_.pool[id];
  if (!DependsOnLane(id)) {
    return prelude_.UseAllIn(
        dialect_.Broadcast(dialect_.TypeName(dtype), lanes_, exprs_.Stored(id, dtype)));
  }
  if (expr.op == Op::kLoad) return Elements(expr.buffer, p_.pool.IndicesOf(expr)[0]).text;
  if (expr.op == Op::kCast) return PackedOperation(expr.a, dtype);
  return PackedCall(expr.op == Op::kMin ? "min" : "max", dtype, {expr.a, expr.b});
}

// Prints the new value of the elements, combined with the old one if the store is a reduction.
std::string CVectorPrinter::Combined(const lower::Stmt& store) {
  if (store.reducer == ir::Reducer::kNone) return Argument(store.values[0]);
  const CText old = Load(store.outputs[0], store.indices[0]);
  if (store.reducer == ir::Reducer::kSum) {
    prelude_.Use("operator+");
    return absl::StrCat(old.text, " + ", Vector(store.values[0]).Within(CBinding::kProduct));
  }
  if (store.reducer == ir::Reducer::kProd) {
    prelude_.Use("operator*");
    return absl::StrCat(old.text, " * ", Vector(store.values[0]).Within(CBinding::kUnary));
  }
  const bool min = store.reducer == ir::Reducer::kMin;
  const std::string function =
      prelude_.Use(min ? "min" : "max", absl::StrCat(exprs_.ValueType(dtype_), lanes_));
  return absl::StrCat(function, "(", old.text, ", ", Argument(store.values[0]), ")");
}

std::optional<std::string> CVectorPrinter::LoadLanes(const Expr& load, ir::AtomId lane) {
  constexpr int64_t kMostBytes = 16;
  lane_ = lane;
  lanes_ = static_cast<int>(p_.atoms[lane].range.extent());
  const int64_t bytes = int64_t{lanes_} * ir::DTypeBytes(load.dtype);
  if (!dialect_.HasVectors() || (lanes_ != 2 && lanes_ != 4) || bytes > kMostBytes ||
      load.gathered >= 0 || load.dtype != p_.buffers[load.buffer].dtype ||
      exprs_.ValueType(load.dtype) != dialect_.TypeName(load.dtype)) {
    return std::nullopt;
  }
  const Index& offset = p_.pool.IndicesOf(load)[0];
  if (!IsConsecutive(offset) || !Access(load.buffer, offset, "").aligned) return std::nullopt;
  return Elements(load.buffer, offset).text;
}

std::optional<CDialect::Assignment> CVectorPrinter::CopyAsync(const lower::Stmt& store,
                                                              ir::AtomId lane) {
  lane_ = lane;
  lanes_ = lane == ir::kNoAtom ? 1 : static_cast<int>(p_.atoms[lane].range.extent());
  const Expr& value = p_.pool[store.values[0]];
  const ir::BufferId output = store.outputs[0];
  const auto bytes = static_cast<int>(lanes_ * ir::DTypeBytes(p_.buffers[output].dtype));
  if (bytes != 4 && bytes != 8 && bytes != 16) return std::nullopt;
  std::string elements[2];
  for (const bool is_source : {false, true}) {
    const ir::BufferId buffer = is_source ? value.buffer : output;
    const Index& offset = is_source ? p_.pool.IndicesOf(value)[0] : store.indices[0];
    if (lane == ir::kNoAtom) {
      elements[is_source] = exprs_.Element(buffer, offset, ir::kNoExpr);
      continue;
    }
    if (!IsConsecutive(offset)) return std::nullopt;
    elements[is_source] = First(buffer, offset);
    if (!Access(buffer, offset, elements[is_source]).aligned) return std::nullopt;
  }
  const std::string function = prelude_.UseAllIn(dialect_.CopyAsync(bytes));
  if (function.empty()) return std::nullopt;
  return CDialect::Assignment{absl::StrCat(function, "(&", elements[0], ","),
                              absl::StrCat("&", elements[1], ");")};
}

std::optional<CDialect::Assignment> CVectorPrinter::Dot(const lower::Stmt& store) {
  const ir::Intrinsic* intrinsic = lower::IntrinsicOf(store);
  if (intrinsic == nullptr) return std::nullopt;
  const std::string function = absl::StrCat("hone_", intrinsic->name);
  if (dialect_.Define(function).empty()) return std::nullopt;
  lane_ = store.tensor_vars[0];
  lanes_ = static_cast<int>(p_.atoms[lane_].range.extent());
  std::vector<Expr> operands;
  p_.pool.VisitLoads(store.values[0], [&](const Expr& load) { operands.push_back(load); });
  // Their types may be in the other order.
  const ir::Workload& description = ir::DescriptionOf(*intrinsic);
  if (operands[0].dtype != description.tensors[description.Inputs()[0]].dtype) {
    std::swap(operands[0], operands[1]);
  }
  std::string arguments[2];
  for (size_t o = 0; o < operands.size(); ++o) {
    const Index& offset = p_.pool.IndicesOf(operands[o])[0];
    if (!IsConsecutive(offset)) return std::nullopt;
    arguments[o] = Elements(operands[o].buffer, offset).text;
  }
  std::string sum = exprs_.Element(store.outputs[0], store.indices[0], ir::kNoExpr);
  std::string value =
      absl::StrCat(prelude_.Use(function), "(", arguments[0], ", ", arguments[1], ", ", sum, ")");
  return CDialect::Assignment{std::move(sum), std::move(value)};
}

std::optional<CDialect::Assignment> CVectorPrinter::Print(const lower::Stmt& store,
                                                          ir::AtomId lane) {
  lane_ = lane;
  const int64_t extent = p_.atoms[lane].range.extent();
  static constexpr std::array<int64_t, 4> kLanes = {2, 4, 8, 16};
  if (!dialect_.HasVectors() || store.outputs.size() != 1 || ir::ReducerArity(store.reducer) != 1 ||
      std::find(kLanes.begin(), kLanes.end(), extent) == kLanes.end()) {
    return std::nullopt;
  }
  lanes_ = static_cast<int>(extent);
  const ir::BufferId output = store.outputs[0];
  const DType dtype = p_.buffers[output].dtype;
  const Index& offset = store.indices[0];
  if (!IsConsecutive(offset)) return std::nullopt;
  bool is_private = IsPrivate(output);
  p_.pool.VisitLoads(store.values[0], [&](const Expr& load) {
    is_private &= IsPrivate(load.buffer) || !p_.atoms.DependsOn(p_.pool.IndicesOf(load)[0], lane);
  });
  if (is_private) return std::nullopt;

  const Expr& value = p_.pool[store.values[0]];
  const auto assign = [&](absl::string_view text) {
    const std::string first = First(output, offset);
    CDialect::Assignment store = dialect_.Store(Access(output, offset, first), text);
    prelude_.UseAllIn(store.target);
    prelude_.UseAllIn(store.value);
    return store;
  };
  // A copy needs no conversion.
  if (store.reducer == ir::Reducer::kNone && value.op == Op::kLoad && value.gathered < 0 &&
      p_.buffers[value.buffer].dtype == dtype && IsConsecutive(p_.pool.IndicesOf(value)[0])) {
    return assign(Elements(value.buffer, p_.pool.IndicesOf(value)[0]).text);
  }
  dtype_ = ir::AccumulatorOf(dtype);
  const bool rounds = IsHalf(dtype) && store.reducer == ir::Reducer::kNone;
  if (dtype != DType::kF32 && dtype != DType::kF64 && !rounds) return std::nullopt;
  // A cast to this type is left out, because the store rounds in the same way.
  lower::Stmt plain = store;
  if (rounds && value.op == Op::kCast && value.dtype == dtype &&
      ir::AccumulatorOf(p_.pool[value.a].dtype) == dtype_) {
    plain.values[0] = value.a;
  }
  if (!HasVector(plain.values[0])) return std::nullopt;
  if (dtype_ == DType::kF64) prelude_.UseF64();
  if (!rounds) return assign(Combined(plain));
  const std::optional<std::string> packed = PackedOperation(plain.values[0], dtype);
  return assign(packed.has_value() ? *packed
                                   : Convert(dtype, "_from_float", Argument(plain.values[0])));
}

}  // namespace hone::codegen
