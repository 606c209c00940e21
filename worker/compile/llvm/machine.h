#ifndef HONE_WORKER_COMPILE_LLVM_MACHINE_H_
#define HONE_WORKER_COMPILE_LLVM_MACHINE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/dtype.h"
#include "common/ir/intrinsic.h"
#include "common/target/target.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"

namespace hone::codegen {

// The LLVM intrinsic of an instruction of the shape kDot, or a function that emits several.
struct DotCode {
  absl::string_view name;
  ir::DType operand;  // element type of its operand vectors
  llvm::Value* (*emit)(llvm::IRBuilder<>& b, llvm::Value* sum, llvm::Value* left,
                       llvm::Value* right) = nullptr;
};

// A tile in memory, an operand of an instruction of the shape kTile.
struct TileMemory {
  llvm::Value* pointer;
  llvm::Value* stride;  // from row to row in bytes, an i64
  int64_t rows;
  int64_t row_bytes;
};

// The code of an instruction of the shape kTile. Tiles in registers are values of one type, which
// may be operands of phis.
class TileCode {
 public:
  virtual int registers() const = 0;  // for tiles of this instruction
  virtual llvm::Value* Load(llvm::IRBuilder<>& b, const TileMemory& from) const = 0;
  virtual void Store(llvm::IRBuilder<>& b, llvm::Value* tile, const TileMemory& to) const = 0;
  // Returns a tile of zeros that has the size of `like`.
  virtual llvm::Value* Zero(llvm::IRBuilder<>& b, const TileMemory& like) const = 0;
  // Returns sum + left · right. `of_sum` and `of_left` have the sizes of these tiles.
  virtual llvm::Value* MultiplyAdd(llvm::IRBuilder<>& b, llvm::Value* sum, llvm::Value* left,
                                   llvm::Value* right, const TileMemory& of_sum,
                                   const TileMemory& of_left) const = 0;

 protected:
  ~TileCode() = default;
};

// Optional passes of LLVM's code generator.
struct Passes {
  // Whether the scheduler may reorder instructions. The emitter orders code to use all registers,
  // so moving loads up would only spill accumulators. In-order cores need the scheduler for code
  // without accumulators.
  bool schedule = false;
  // Whether loops advance pointers (loop strength reduction). The emitter has hoisted every
  // address, so this gains little except on in-order cores, and it takes half of the code
  // generator's time.
  bool advance_pointers = false;
};

// What the LLVM back end needs to know of an architecture, for one target.
class Machine {
 public:
  // Unimplemented: there is no machine for the target's architecture. `target` must outlive it.
  static absl::StatusOr<std::unique_ptr<Machine>> For(const target::Target& target);
  virtual ~Machine() = default;

  // The size of a vector register.
  int vector_bits() const { return target_.vector_bits; }

  // Arranges the instructions of an optimized module for the CPU. Returns what the code generator
  // should do with them.
  virtual Passes Arrange(llvm::Module& module) const = 0;
  // Whether a load per lane is faster than a gather.
  virtual bool GathersSlowly() const { return false; }
  // Whether a store under a mask is slower than a few stores of its parts.
  virtual bool MasksSlowly() const { return true; }
  // Whether the CPU converts f16 to f32 and back.
  virtual bool ConvertsF16() const { return true; }
  // Whether LLVM converts vectors of i64 to f32 through f64, and thus rounds twice.
  virtual bool RoundsI64Twice() const { return false; }
  // Whether LLVM miscompiles the store of a vector of three bytes.
  virtual bool MisplacesThreeBytes() const { return false; }
  // Whether the CPU adds, subtracts, multiplies, divides and takes roots in f16.
  virtual bool ComputesF16() const { return false; }

  // Whether dividing vectors of this type takes less time than DivideByUniform (vector_math).
  virtual bool DividesQuickly(llvm::Type*) const { return false; }
  // Whether a branch that depends on all lanes of a vector takes few instructions.
  virtual bool BranchesOnLanes() const { return false; }

  // Orders non-temporal stores before all later stores.
  virtual void EmitStoreFence(llvm::IRBuilder<>&) const {}

  // Whether an instruction multiplies values of this type by powers of two.
  virtual bool Scales(llvm::Type*) const { return false; }
  // Returns value · 2^exponent, rounded once. REQUIRES Scales(value->getType()).
  virtual llvm::Value* EmitScale(llvm::IRBuilder<>& b, llvm::Value* value,
                                 llvm::Value* exponent) const;

  // Truncates a vector of f32 to i32. A number that does not fit, an infinity or NaN gives a
  // multiple of 256, so that the low byte is 0. Returns nullptr if no instruction does this.
  virtual llvm::Value* EmitTruncation(llvm::IRBuilder<>&, llvm::Value*) const { return nullptr; }

  // Emits `i1 hone_cpu_guard()`. It returns whether the current CPU has every feature that
  // `subtarget` has enabled and that code may use, and whether the operating system saves the
  // registers. The guard itself runs on any CPU of the architecture. InvalidArgument: the subtarget
  // has a feature for which no check is known.
  virtual absl::StatusOr<llvm::Function*> EmitCpuGuard(
      llvm::Module& module, const llvm::MCSubtargetInfo& subtarget) const = 0;

  // Sets attributes of a function that runs after the guard.
  virtual void SetAttributes(llvm::Function&) const {}
  // Whether the CPU has a division of 64-bit integers.
  virtual bool DividesI64() const { return true; }
  // Replaces operations for which the CPU has no instructions, and for which LLVM would call
  // functions of a library.
  virtual void ReplaceCalls(llvm::Module&, const llvm::MCSubtargetInfo&) const {}

  // The code of an instruction of common/ir/intrinsic.h, by its shape. Unimplemented: this machine
  // has none.
  virtual absl::StatusOr<DotCode> DotOf(const ir::Intrinsic& intrinsic) const;
  virtual absl::StatusOr<const TileCode*> TileOf(const ir::Intrinsic& intrinsic) const;

 protected:
  explicit Machine(const target::Target& target) : target_(target) {}
  absl::Status NoCodeError(const ir::Intrinsic& intrinsic) const;

  const target::Target& target_;
};

std::unique_ptr<Machine> MakeX86(const target::Target& target);
std::unique_ptr<Machine> MakeAArch64(const target::Target& target);
std::unique_ptr<Machine> MakeArmv7(const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_MACHINE_H_
