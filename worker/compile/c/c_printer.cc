#include "worker/compile/c/c_printer.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/target/capabilities.h"
#include "worker/compile/c/c_comments.h"
#include "worker/compile/c/c_memory.h"
#include "worker/compile/c/c_store.h"
#include "worker/compile/lower/lower.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {
namespace {

// Prints one kernel: its signature, the memory and threads that it uses, and its statements.
class CKernelPrinter {
 public:
  // All arguments must outlive this object. `buffers`: the buffers' names, which `names` contains.
  CKernelPrinter(lower::LoweredProgram& program, const CDialect& dialect, CPrelude& prelude,
                 const CNames& names, const std::vector<std::string>& buffers);

  // Errors as in PrintC.
  absl::StatusOr<std::string> Print(const lower::LoweredKernel& kernel,
                                    const std::string& function);

 private:
  absl::Status Print(lower::StmtId id, bool described);
  absl::Status PrintIf(const lower::Stmt& branch, bool described);
  absl::Status PrintFor(lower::StmtId id, bool described);
  absl::Status PrintBody(lower::StmtId body, bool described);
  absl::Status PrintBound(const lower::Stmt& loop, bool described);
  // Adds a line and the functions of the prelude that it calls. Does nothing if it is empty.
  void AddLine(const std::string& line);
  absl::Status CheckUniform(const ir::Index& index) const;
  // Prints the maximum or minimum (`function`) of a loop's constant bound and its runtime bounds.
  std::string Bound(absl::string_view function, int64_t constant, bool needs_constant,
                    const std::vector<ir::Index>& bounds, absl::string_view type);

  lower::LoweredProgram& p_;
  const CDialect& dialect_;
  CPrelude& prelude_;
  CNames names_;
  const std::vector<std::string>& buffers_;
  CLines lines_;
  CIndexPrinter index_;
  CExprPrinter exprs_;
  CVectorPrinter vectors_;
  CStorePrinter stores_;

  const lower::LoweredKernel* kernel_ = nullptr;
  bool outermost_ = true;  // only loops over blocks and threads have been entered
  std::vector<const lower::Stmt*> threads_;
  ir::AtomId lane_ = ir::kNoAtom;
  bool exchanges_global_ = false;
  int64_t copies_ = 1;      // of the current statement, made by unrolling the loops around it
  int64_t statements_ = 0;  // including copies
};

constexpr int64_t kMaxStatements = 16384;  // stores, with all unrolled loops unrolled

// The extent of the launch on an axis.
int64_t LaunchExtent(const lower::LoweredKernel& kernel, ir::ThreadAxis axis) {
  const auto number = static_cast<int>(axis);
  const auto block_x = static_cast<int>(ir::ThreadAxis::kBlockX);
  const auto thread_x = static_cast<int>(ir::ThreadAxis::kThreadX);
  if (number >= block_x && number < block_x + 3) return kernel.grid[number - block_x];
  if (number >= thread_x && number < thread_x + 3) return kernel.block[number - thread_x];
  return 0;
}

using ir::AtomId;
using ir::Index;
using lower::LoweredProgram;
using lower::Stmt;
using lower::StmtId;

CKernelPrinter::CKernelPrinter(LoweredProgram& program, const CDialect& dialect, CPrelude& prelude,
                               const CNames& names, const std::vector<std::string>& buffers)
    : p_(program),
      dialect_(dialect),
      prelude_(prelude),
      names_(names),
      buffers_(buffers),
      index_(program.atoms, prelude),
      exprs_(program, dialect, index_, prelude, buffers),
      vectors_(program, dialect, exprs_, prelude),
      stores_(program, dialect, index_, exprs_, vectors_, prelude, names_, lines_) {}

absl::StatusOr<std::string> CKernelPrinter::Print(const lower::LoweredKernel& kernel,
                                                  const std::string& function) {
  kernel_ = &kernel;
  exchanges_global_ = CMemoryPrinter::ExchangesGlobal(p_, kernel.body);
  lines_.SetDepth(1);
  HONE_RETURN_IF_ERROR(Print(kernel.body, /*described=*/false));

  // The statements are known now, so only what they use is declared.
  const std::set<ir::BufferId> used = exprs_.TakeUsedBuffers();
  for (const ir::BufferId id : used) {
    if (p_.buffers[id].dtype == ir::DType::kF64) prelude_.UseF64();
  }
  const std::map<ir::BufferId, int64_t> alignments = vectors_.TakeAlignments();
  const CMemoryPrinter memory(p_, dialect_, prelude_, buffers_, used, alignments);
  CLines head;
  if (!dialect_.OneThread()) {
    for (const std::string& line : DescribeKernel(p_, kernel)) head.Add("// ", line);
  }
  head.Add(dialect_.KernelHead(kernel.block), " ", function, "(");
  head.SetDepth(2);
  head.Add(absl::StrJoin(memory.Parameters(kernel), ",\n    "), ") {");
  head.SetDepth(1);
  HONE_RETURN_IF_ERROR(memory.Declare(kernel, names_, head));
  for (const Stmt* const loop : threads_) {
    if (!index_.IsUsed(loop->var)) continue;
    head.Add("const int ", index_.NameOf(loop->var), " = ", dialect_.ThreadIndex(loop->axis),
             ";  // below ", loop->extent);
  }
  return absl::StrCat(head.text(), lines_.text(), "}\n");
}

absl::Status CKernelPrinter::CheckUniform(const Index& index) const {
  if (lane_ == ir::kNoAtom || !p_.atoms.DependsOn(index, lane_)) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("a branch or bound on ", p_.atoms.ToString(index), " differs between lanes"));
}

absl::Status CKernelPrinter::Print(StmtId id, bool described) {
  if (id == lower::kNoStmt) return absl::OkStatus();
  const Stmt stmt = p_.stmts[id];
  const bool is_bound = stmt.kind == Stmt::Kind::kFor && stmt.loop == ir::LoopKind::kBound;
  const bool describes = stmt.kind == Stmt::Kind::kFor || stmt.kind == Stmt::Kind::kIf;
  if (!described && !is_bound && (describes || stmt.kind == Stmt::Kind::kStore)) {
    if (const std::string text = DescribeNest(p_, id, buffers_); !text.empty()) {
      lines_.Add("// ", text);
      described = true;
    }
  }
  if (stmt.kind != Stmt::Kind::kFor && stmt.kind != Stmt::Kind::kSeq) outermost_ = false;
  switch (stmt.kind) {
    case Stmt::Kind::kSeq:
      if (stmt.children.size() > 1) outermost_ = false;
      for (const StmtId child : stmt.children) HONE_RETURN_IF_ERROR(Print(child, described));
      return absl::OkStatus();
    case Stmt::Kind::kFor:
      return PrintFor(id, described);
    case Stmt::Kind::kIf:
      return PrintIf(stmt, described);
    case Stmt::Kind::kStore:
      statements_ += copies_;
      if (statements_ > kMaxStatements) {
        return absl::InvalidArgumentError(
            absl::StrCat("the unrolled code exceeds ", kMaxStatements, " statements"));
      }
      return stores_.Print(id, lane_);
    case Stmt::Kind::kBarrier:
      if (dialect_.Barrier(false).empty()) {
        return absl::UnimplementedError("a barrier, which only GPUs have");
      }
      lines_.Add(dialect_.Barrier(exchanges_global_));
      return absl::OkStatus();
    case Stmt::Kind::kCommitCopies:
      AddLine(dialect_.CommitCopies());
      return absl::OkStatus();
    case Stmt::Kind::kWaitForCopies:
      AddLine(dialect_.WaitForCopies(stmt.pending));
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

void CKernelPrinter::AddLine(const std::string& line) {
  if (!line.empty()) lines_.Add(prelude_.UseAllIn(line));
}

absl::Status CKernelPrinter::PrintIf(const Stmt& branch, bool described) {
  // Branches that are nested with nothing in between are printed as one.
  std::vector<ir::Condition> conditions = {branch.condition};
  StmtId body = branch.children[0];
  const StmtId otherwise = branch.children.size() > 1 ? branch.children[1] : lower::kNoStmt;
  while (otherwise == lower::kNoStmt && body != lower::kNoStmt) {
    const Stmt& inner = p_.stmts[body];
    const bool is_branch = inner.kind == Stmt::Kind::kIf && inner.children.size() == 1;
    const bool is_group = inner.kind == Stmt::Kind::kSeq && inner.children.size() == 1;
    if (!is_branch && !is_group) break;
    if (is_branch) conditions.push_back(inner.condition);
    body = inner.children[0];
  }
  for (const ir::Condition& condition : conditions) {
    HONE_RETURN_IF_ERROR(CheckUniform(condition.index));
  }
  const std::string text = index_.Print(conditions).text;
  if (text.empty()) return Print(body, described);
  if (text == CIndexPrinter::kNever) return Print(otherwise, described);
  lines_.Open("if (", text, ")");
  HONE_RETURN_IF_ERROR(Print(body, described));
  if (otherwise != lower::kNoStmt) {
    lines_.Else();
    HONE_RETURN_IF_ERROR(Print(otherwise, described));
  }
  lines_.Close();
  return absl::OkStatus();
}

absl::Status CKernelPrinter::PrintBound(const Stmt& loop, bool described) {
  const std::string& name = p_.atoms[loop.var].name;
  if (dialect_.ThreadIndex(loop.axis).empty()) {
    return absl::UnimplementedError(absl::StrCat("loop ", name, " is bound to ",
                                                 ir::ThreadAxisName(loop.axis),
                                                 ", which this kind of code does not have"));
  }
  if (!outermost_ || LaunchExtent(*kernel_, loop.axis) != loop.extent) {
    return absl::InternalError(absl::StrCat("loop ", name, " of ", loop.extent,
                                            " iterations does not match the launch of kernel ",
                                            kernel_->name));
  }
  index_.Name(loop.var, names_.Add(AxisName(loop.axis)));
  threads_.push_back(&loop);
  return Print(loop.children[0], described);
}

std::string CKernelPrinter::Bound(absl::string_view function, int64_t constant, bool needs_constant,
                                  const std::vector<Index>& bounds, absl::string_view type) {
  std::string text = needs_constant ? absl::StrCat(constant) : "";
  for (const Index& bound : bounds) {
    const std::string value = index_.Print(bound).text;
    if (text.empty()) {
      text = value;
    } else {
      const std::string name = prelude_.Use(function, type);
      text = absl::StrCat(name, "(", text, ", ", value, ")");
    }
  }
  return text;
}

absl::Status CKernelPrinter::PrintBody(StmtId body, bool described) {
  const bool outermost = std::exchange(outermost_, false);
  const absl::Status status = Print(body, described);
  outermost_ = outermost;
  return status;
}

absl::Status CKernelPrinter::PrintFor(StmtId id, bool described) {
  const Stmt& loop = p_.stmts[id];
  const StmtId body = loop.children[0];
  if (loop.loop == ir::LoopKind::kBound) return PrintBound(loop, described);
  if (loop.loop == ir::LoopKind::kTensor) {
    return absl::UnimplementedError("a tensor loop was not lowered");
  }
  if (loop.loop == ir::LoopKind::kParallel && !dialect_.OneThread()) {
    return absl::UnimplementedError(absl::StrCat("loop ", p_.atoms[loop.var].name,
                                                 " is parallel on CPU threads; on a GPU, bind it"));
  }
  const std::string name = names_.Add(LoopName(p_.atoms[loop.var].name));
  index_.Name(loop.var, name);
  if (loop.loop == ir::LoopKind::kVectorized) {
    const AtomId outer = std::exchange(lane_, loop.var);
    if (outer != ir::kNoAtom) {
      return absl::UnimplementedError("a vectorized loop inside a vectorized loop");
    }
    HONE_RETURN_IF_ERROR(PrintBody(body, described));
    lane_ = ir::kNoAtom;
    names_.Remove(name);
    return absl::OkStatus();
  }
  // Leaves out bounds that have no effect.
  std::vector<Index> begins, ends;
  bool is_int = CIndexPrinter::TypeOf(loop.extent) == "int", starts_at_0 = true, ends_at_all = true;
  for (const Index& bound : loop.begins) {
    HONE_RETURN_IF_ERROR(CheckUniform(bound));
    const ir::Range range = p_.atoms.RangeOf(bound);
    if (range.max <= 0) continue;
    begins.push_back(bound);
    is_int &= index_.IsInt(bound);
    starts_at_0 &= range.min < 0;
  }
  for (const Index& bound : loop.ends) {
    HONE_RETURN_IF_ERROR(CheckUniform(bound));
    const ir::Range range = p_.atoms.RangeOf(bound);
    if (range.min >= loop.extent) continue;
    ends.push_back(bound);
    is_int &= index_.IsInt(bound);
    ends_at_all &= range.max > loop.extent;
  }
  const absl::string_view type = is_int ? "int" : "long";
  const std::string begin = Bound("max", 0, starts_at_0, begins, type);
  const std::string end = Bound("min", loop.extent, ends_at_all, ends, type);
  const bool unrolled = loop.loop == ir::LoopKind::kUnrolled;
  if (unrolled && !dialect_.Unroll().empty()) lines_.Add(dialect_.Unroll());
  lines_.OpenFor(type, name, begin, end);
  const int64_t copies = copies_;
  if (unrolled) copies_ = std::min(copies_ * loop.extent, kMaxStatements + 1);
  HONE_RETURN_IF_ERROR(PrintBody(body, described));
  copies_ = copies;
  lines_.Close();
  names_.Remove(name);
  return absl::OkStatus();
}

absl::Status CheckLimits(const target::GpuLaunch& launch, const target::GpuLimits& limits) {
  const auto refuse = [&](absl::string_view what, int64_t used, int64_t allowed) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", launch.kernel, " uses ", used, " ",
                                                   what, ", the device allows ", allowed));
  };
  if (launch.Threads() > limits.max_threads) {
    return refuse("threads in a block", launch.Threads(), limits.max_threads);
  }
  if (launch.shared_bytes > limits.shared_bytes) {
    return refuse("bytes of shared memory", launch.shared_bytes, limits.shared_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Code> PrintGpuSource(const lower::LoweredProgram& program,
                                    const target::Target& target, const CDialect& dialect,
                                    absl::string_view format) {
  HONE_RETURN_IF_ERROR(lower::CheckIntrinsics(program, target));
  HONE_ASSIGN_OR_RETURN(CModule printed, PrintC(program, dialect));
  if (printed.uses_f64 && !target::ComputesF64(target)) {
    return absl::InvalidArgumentError(absl::StrCat("the code computes in f64, which ", target.Key(),
                                                   " does not have (feature fp64); use f32"));
  }
  target::GpuModule module{.kind = target.kind,
                           .arguments = program.arguments,
                           .packed_bytes = program.packed_bytes,
                           .workspace_bytes = program.workspace_bytes};
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const lower::LoweredKernel& kernel = program.kernels[k];
    module.launches.push_back({.kernel = printed.functions[k],
                               .prepack = kernel.prepack,
                               .grid = kernel.grid,
                               .block = kernel.block,
                               .shared_bytes = kernel.shared_bytes});
    HONE_RETURN_IF_ERROR(CheckLimits(module.launches.back(), target.gpu));
  }
  return Code{std::string(format), printed.text, printed.text, std::move(module)};
}

absl::StatusOr<CModule> PrintC(const lower::LoweredProgram& program, const CDialect& dialect) {
  lower::LoweredProgram copy = program;  // reductions add expressions
  CPrelude prelude(dialect);
  CNames names;
  for (const char* const parameter : {"packed", "workspace"}) names.Add(parameter);
  const std::vector<std::string> buffers = NameBuffers(copy, names);
  CNames functions;
  CModule module;
  std::string kernels;
  for (const lower::LoweredKernel& kernel : program.kernels) {
    const std::string& function = module.functions.emplace_back(functions.Add(
        kernel.name == ir::kMainKernel ? absl::StrCat(kernel.name, "_kernel") : kernel.name));
    CKernelPrinter printer(copy, dialect, prelude, names, buffers);
    HONE_ASSIGN_OR_RETURN(const std::string text, printer.Print(kernel, function));
    absl::StrAppend(&kernels, kernels.empty() ? "" : "\n", text);
  }
  module.text = absl::StrCat(prelude.Text(), kernels);
  module.uses_f64 = prelude.uses_f64();
  return module;
}

}  // namespace hone::codegen
