#include "worker/compile/lower/intrinsics.h"

#include "absl/strings/str_cat.h"

namespace hone::lower {

const ir::Intrinsic* IntrinsicOf(const Stmt& store) {
  return ir::FindIntrinsic(ir::ValueOf(store.annotations, ir::Annotation::Key::kIntrinsic, -1));
}

absl::Status CheckIntrinsics(const LoweredProgram& program, const target::Target& target) {
  for (const Stmt& stmt : program.stmts) {
    if (stmt.kind != Stmt::Kind::kStore) continue;
    const ir::Intrinsic* intrinsic = IntrinsicOf(stmt);
    if (intrinsic == nullptr ||
        (target.arch == intrinsic->arch && target.HasFeature(intrinsic->feature)))
      continue;
    return absl::UnimplementedError(absl::StrCat(intrinsic->name, " needs ", intrinsic->arch,
                                                 " with ", intrinsic->feature, "; the target is ",
                                                 target.arch, " ", target.cpu, " without it"));
  }
  return absl::OkStatus();
}

}  // namespace hone::lower
