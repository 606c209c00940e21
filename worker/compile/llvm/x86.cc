#include <algorithm>

#include "absl/strings/match.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "worker/compile/llvm/cpu_guard.h"
#include "worker/compile/llvm/machine.h"
#include "worker/compile/llvm/vector_parts.h"

namespace hone::codegen {
namespace {

using llvm::Value;

int LanesOf(const Value* value) {
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements());
}

// Adds products of four bytes to each lane of i32, exactly, on CPUs without an instruction for it.
// The bytes at even and at odd places become two vectors of i16, in the order that they have, and
// VPMADDWD multiplies these and adds pairs. The elements of `left` and `right` are four bytes each.
template <bool left_signed, bool right_signed>
Value* EmitMadd(llvm::IRBuilder<>& b, Value* sum, Value* left, Value* right) {
  const auto even = [&b](Value* pairs, bool is_signed) {
    return is_signed ? b.CreateAShr(b.CreateShl(pairs, 8), 8)
                     : b.CreateAnd(pairs, llvm::ConstantInt::get(pairs->getType(), 0xff));
  };
  const auto odd = [&b](Value* pairs, bool is_signed) {
    return is_signed ? b.CreateAShr(pairs, 8) : b.CreateLShr(pairs, 8);
  };
  auto* pair = llvm::FixedVectorType::get(b.getInt16Ty(), static_cast<unsigned>(2 * LanesOf(sum)));
  left = b.CreateBitCast(left, pair);
  right = b.CreateBitCast(right, pair);
  const bool wide = sum->getType()->getPrimitiveSizeInBits().getFixedValue() == 512;
  const llvm::Intrinsic::ID madd =
      wide ? llvm::Intrinsic::x86_avx512_pmaddw_d_512 : llvm::Intrinsic::x86_avx2_pmadd_wd;
  const auto add = [&](Value* to, Value* l, Value* r) {
    return b.CreateAdd(to, b.CreateIntrinsic(madd, {}, {l, r}));
  };
  sum = add(sum, even(left, left_signed), even(right, right_signed));
  return add(sum, odd(left, left_signed), odd(right, right_signed));
}

struct Dot {
  absl::string_view name;  // of the instruction in common/ir/intrinsic.h
  DotCode code;
};
constexpr Dot kDots[] = {
    {"vnni_16x4", {"llvm.x86.avx512.vpdpbusd.512", ir::DType::kI32}},
    {"vnni_8x4", {"llvm.x86.avx512.vpdpbusd.256", ir::DType::kI32}},
    {"avxvnni_8x4", {"llvm.x86.avx512.vpdpbusd.256", ir::DType::kI32}},
    {"bf16dot_16x2", {"llvm.x86.avx512bf16.dpbf16ps.512", ir::DType::kBF16}},
    {"madd_u8i8_8x4", {"", ir::DType::kI32, EmitMadd<false, true>}},
    {"madd_i8_8x4", {"", ir::DType::kI32, EmitMadd<true, true>}},
    {"madd_u8_8x4", {"", ir::DType::kI32, EmitMadd<false, false>}},
    {"madd_u8i8_16x4", {"", ir::DType::kI32, EmitMadd<false, true>}},
    {"madd_i8_16x4", {"", ir::DType::kI32, EmitMadd<true, true>}},
    {"madd_u8_16x4", {"", ir::DType::kI32, EmitMadd<false, false>}},
};

llvm::FunctionCallee Declare(llvm::IRBuilder<>& b, absl::string_view name, llvm::Type* result,
                             llvm::ArrayRef<llvm::Type*> parameters) {
  return b.GetInsertBlock()->getModule()->getOrInsertFunction(
      {name.data(), name.size()}, llvm::FunctionType::get(result, parameters, false));
}

// AMX. LLVM assigns the tile registers, configures them at the begin of a function (LDTILECFG) and
// releases them at its end.
class AmxTile final : public TileCode {
 public:
  constexpr AmxTile(absl::string_view name, absl::string_view multiply)
      : name_(name), multiply_(multiply) {}

  absl::string_view name() const { return name_; }
  int registers() const override { return 8; }

  Value* Load(llvm::IRBuilder<>& b, const TileMemory& from) const override {
    const auto load = Declare(b, "llvm.x86.tileloadd64.internal", TypeOf(b),
                              {b.getInt16Ty(), b.getInt16Ty(), b.getPtrTy(), b.getInt64Ty()});
    return b.CreateCall(load, {Rows(b, from), RowBytes(b, from), from.pointer, from.stride});
  }

  void Store(llvm::IRBuilder<>& b, Value* tile, const TileMemory& to) const override {
    const auto store =
        Declare(b, "llvm.x86.tilestored64.internal", b.getVoidTy(),
                {b.getInt16Ty(), b.getInt16Ty(), b.getPtrTy(), b.getInt64Ty(), TypeOf(b)});
    b.CreateCall(store, {Rows(b, to), RowBytes(b, to), to.pointer, to.stride, tile});
  }

  Value* Zero(llvm::IRBuilder<>& b, const TileMemory& like) const override {
    const auto zero =
        Declare(b, "llvm.x86.tilezero.internal", TypeOf(b), {b.getInt16Ty(), b.getInt16Ty()});
    return b.CreateCall(zero, {Rows(b, like), RowBytes(b, like)});
  }

  Value* MultiplyAdd(llvm::IRBuilder<>& b, Value* sum, Value* left, Value* right,
                     const TileMemory& of_sum, const TileMemory& of_left) const override {
    llvm::Type* const amx = TypeOf(b);
    const auto multiply =
        Declare(b, multiply_, amx, {b.getInt16Ty(), b.getInt16Ty(), b.getInt16Ty(), amx, amx, amx});
    return b.CreateCall(
        multiply, {Rows(b, of_sum), RowBytes(b, of_sum), RowBytes(b, of_left), sum, left, right});
  }

 private:
  static llvm::Type* TypeOf(llvm::IRBuilder<>& b) {
    return llvm::Type::getX86_AMXTy(b.getContext());
  }
  static Value* Rows(llvm::IRBuilder<>& b, const TileMemory& memory) {
    return b.getInt16(static_cast<uint16_t>(memory.rows));
  }
  static Value* RowBytes(llvm::IRBuilder<>& b, const TileMemory& memory) {
    return b.getInt16(static_cast<uint16_t>(memory.row_bytes));
  }

  absl::string_view name_;  // of the instruction in common/ir/intrinsic.h
  absl::string_view multiply_;
};

constexpr AmxTile kTiles[] = {
    {"amx_u8i8_16x16x64", "llvm.x86.tdpbusd.internal"},
    {"amx_i8_16x16x64", "llvm.x86.tdpbssd.internal"},
    {"amx_u8_16x16x64", "llvm.x86.tdpbuud.internal"},
    {"amx_bf16_16x16x32", "llvm.x86.tdpbf16ps.internal"},
    {"amx_u8i8_14x16x64", "llvm.x86.tdpbusd.internal"},
    {"amx_i8_14x16x64", "llvm.x86.tdpbssd.internal"},
    {"amx_u8_14x16x64", "llvm.x86.tdpbuud.internal"},
    {"amx_bf16_14x16x32", "llvm.x86.tdpbf16ps.internal"},
};

constexpr int kCurrentRounding = 4;  // an operand of instructions on 512 bits

// Applies an instruction for `part` lanes to vectors of any number of lanes.
Value* InParts(llvm::IRBuilder<>& b, llvm::ArrayRef<Value*> operands, int part,
               llvm::function_ref<Value*(llvm::ArrayRef<Value*>)> apply) {
  const int lanes = LanesOf(operands[0]);
  if (lanes == part) return apply(operands);
  llvm::SmallVector<llvm::SmallVector<Value*, 8>, 2> split;
  for (Value* const operand : operands) split.push_back(SplitLanes(b, operand, part));
  llvm::SmallVector<Value*, 8> results;
  for (size_t p = 0; p < split[0].size(); ++p) {
    llvm::SmallVector<Value*, 2> parts;
    for (const auto& operand : split) parts.push_back(operand[p]);
    results.push_back(apply(parts));
  }
  return JoinLanes(b, results, lanes);
}

class X86 final : public Machine {
 public:
  explicit X86(const target::Target& target) : Machine(target) {
    if (target.HasFeature("avx")) truncation_lanes_ = 8;
    if (!target.HasFeature("avx512f")) return;
    if (target.vector_bits >= 512) truncation_lanes_ = 16;
    scale_narrow_ = target.HasFeature("avx512vl");
    scale_bits_ = scale_narrow_ ? target.vector_bits : 512;
  }

  Passes Arrange(llvm::Module&) const override { return {}; }
  // AMD's gathers are microcode: on Zen 5, 16 lanes of f32 from L1 take 12.7 cycles, and 16 loads
  // with their inserts take 7.8. Its scatters cost as much as the stores.
  bool GathersSlowly() const override { return absl::StartsWith(target_.cpu, "znver"); }
  // On Zen 1, eight lanes of f32 take 7.1 cycles, and 12.0 with a reciprocal and its correction.
  // Other Zens were not measured.
  bool DividesQuickly(llvm::Type* type) const override {
    return absl::StartsWith(target_.cpu, "znver") && target_.vector_bits <= 256 &&
           type->getScalarType()->isFloatTy();
  }
  // VMOVMSKPS, a test and a jump. With AVX-512, VSCALEF makes exp short without a branch.
  bool BranchesOnLanes() const override { return target_.HasFeature("avx") && scale_bits_ == 0; }
  // Masked stores of AVX are microcode on AMD's CPUs: on Zen 1, one of 256 bits takes 42
  // operations. Intel's were not measured.
  bool MasksSlowly() const override { return !target_.HasFeature("avx512vl"); }
  bool ConvertsF16() const override {
    return target_.HasFeature("f16c") || target_.HasFeature("avx512f");
  }
  bool ComputesF16() const override { return target_.HasFeature("avx512fp16"); }

  void EmitStoreFence(llvm::IRBuilder<>& b) const override {
    b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  }

  // VSCALEF does this.
  bool Scales(llvm::Type* type) const override { return scale_bits_ > 0 && type->isVectorTy(); }
  Value* EmitScale(llvm::IRBuilder<>& b, Value* value, Value* exponent) const override;
  Value* EmitTruncation(llvm::IRBuilder<>& b, Value* value) const override;

  absl::StatusOr<llvm::Function*> EmitCpuGuard(
      llvm::Module& module, const llvm::MCSubtargetInfo& subtarget) const override {
    return EmitX86CpuGuard(module, subtarget, target_);
  }

  absl::StatusOr<DotCode> DotOf(const ir::Intrinsic& intrinsic) const override {
    for (const Dot& dot : kDots) {
      if (dot.name == intrinsic.name) return dot.code;
    }
    return NoCodeError(intrinsic);
  }

  absl::StatusOr<const TileCode*> TileOf(const ir::Intrinsic& intrinsic) const override {
    for (const AmxTile& tile : kTiles) {
      if (tile.name() == intrinsic.name) return &tile;
    }
    return NoCodeError(intrinsic);
  }

 private:
  int truncation_lanes_ = 4;   // of the widest vector
  int scale_bits_ = 0;         // widest vector that VSCALEF supports; 0: none
  bool scale_narrow_ = false;  // also vectors of 128 and 256 bits
};

Value* X86::EmitScale(llvm::IRBuilder<>& b, Value* value, Value* exponent) const {
  const bool f64 = value->getType()->getScalarType()->isDoubleTy();
  const int lanes = LanesOf(value);
  const int element = f64 ? 64 : 32;
  int width = scale_bits_;
  while (scale_narrow_ && width > 128 && width / 2 >= lanes * element) width /= 2;
  const int part = width / element;
  const llvm::Intrinsic::ID id =
      width == 512   ? (f64 ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                            : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512)
      : width == 256 ? (f64 ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_256
                            : llvm::Intrinsic::x86_avx512_mask_scalef_ps_256)
                     : (f64 ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_128
                            : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128);
  return InParts(b, {value, exponent}, part, [&](llvm::ArrayRef<Value*> parts) -> Value* {
    auto* every = llvm::ConstantInt::getAllOnesValue(b.getIntNTy(std::max(8, part)));
    llvm::SmallVector<Value*, 5> arguments = {parts[0], parts[1], parts[0], every};
    if (width == 512) arguments.push_back(b.getInt32(kCurrentRounding));
    return b.CreateIntrinsic(id, {}, arguments);
  });
}

Value* X86::EmitTruncation(llvm::IRBuilder<>& b, Value* value) const {
  if (!value->getType()->isVectorTy()) return nullptr;
  const int lanes = LanesOf(value);
  int part = truncation_lanes_;
  while (part > 4 && part / 2 >= lanes) part /= 2;
  return InParts(b, {value}, part, [&](llvm::ArrayRef<Value*> parts) -> Value* {
    if (part == 4) return b.CreateIntrinsic(llvm::Intrinsic::x86_sse2_cvttps2dq, {}, parts);
    if (part == 8) return b.CreateIntrinsic(llvm::Intrinsic::x86_avx_cvtt_ps2dq_256, {}, parts);
    auto* none = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getInt32Ty(), part));
    auto* every = llvm::ConstantInt::getAllOnesValue(b.getInt16Ty());
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_cvttps2dq_512, {},
                             {parts[0], none, every, b.getInt32(kCurrentRounding)});
  });
}

}  // namespace

std::unique_ptr<Machine> MakeX86(const target::Target& target) {
  return std::make_unique<X86>(target);
}

}  // namespace hone::codegen
