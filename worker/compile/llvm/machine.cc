#include "worker/compile/llvm/machine.h"

#include "absl/strings/str_cat.h"

namespace hone::codegen {
namespace {

struct Entry {
  absl::string_view arch;  // LLVM's name
  std::unique_ptr<Machine> (*make)(const target::Target& target);
};
// One line per architecture.
constexpr Entry kMachines[] = {{"x86_64", MakeX86}, {"aarch64", MakeAArch64}, {"armv7", MakeArmv7}};

}  // namespace

absl::StatusOr<std::unique_ptr<Machine>> Machine::For(const target::Target& target) {
  for (const Entry& entry : kMachines) {
    if (entry.arch == target.arch) return entry.make(target);
  }
  return absl::UnimplementedError(
      absl::StrCat("no code can be generated for the architecture ", target.arch));
}

llvm::Value* Machine::EmitScale(llvm::IRBuilder<>&, llvm::Value*, llvm::Value*) const {
  return nullptr;
}

absl::Status Machine::NoCodeError(const ir::Intrinsic& intrinsic) const {
  return absl::UnimplementedError(absl::StrCat(intrinsic.name, " has no code on ", target_.arch));
}

absl::StatusOr<DotCode> Machine::DotOf(const ir::Intrinsic& intrinsic) const {
  return NoCodeError(intrinsic);
}

absl::StatusOr<const TileCode*> Machine::TileOf(const ir::Intrinsic& intrinsic) const {
  return NoCodeError(intrinsic);
}

}  // namespace hone::codegen
