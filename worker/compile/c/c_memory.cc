#include "worker/compile/c/c_memory.h"

#include <algorithm>

#include "absl/strings/strip.h"
#include "common/target/kernel_abi.h"

namespace hone::codegen {
namespace {

using Kind = lower::Storage::Kind;
using Space = CDialect::Space;
using ir::BufferId;
using lower::LoweredKernel;
using lower::LoweredProgram;
using lower::Storage;

constexpr char kPacked[] = "packed", kWorkspace[] = "workspace";

bool IsPrepack(const LoweredKernel& kernel) {
  return kernel.prepack || kernel.name == ir::kPrepackKernel;
}

bool IsPrivate(const Storage& storage) {
  return storage.kind == Kind::kStack || storage.kind == Kind::kRegister;
}

// Returns a name for a buffer: "C_acc" for the accumulator "C.acc7" of C, and "A_shared" or
// "A_local" for the copies that primitives call "A_copy" or "A_cache".
std::string Wish(const ir::Buffer& buffer, const Storage& storage) {
  absl::string_view name = buffer.name;
  if (const size_t acc = name.find(".acc"); acc != absl::string_view::npos) {
    name = name.substr(0, acc);
    for (const char* const copy : {"_copy", "_cache"}) absl::ConsumeSuffix(&name, copy);
    return absl::StrCat(name, "_acc");
  }
  if (storage.kind != Kind::kShared && !IsPrivate(storage)) return std::string(name);
  if (absl::ConsumeSuffix(&name, "_copy") || absl::ConsumeSuffix(&name, "_cache")) {
    return absl::StrCat(name, storage.kind == Kind::kShared ? "_shared" : "_local");
  }
  return std::string(name);
}

int64_t BytesOf(const LoweredProgram& program, BufferId id) {
  return program.storage[id].elements * ir::DTypeBytes(program.buffers[id].dtype);
}

}  // namespace

std::vector<std::string> NameBuffers(const LoweredProgram& program, CNames& names) {
  std::vector<std::string> buffers(program.buffers.size());
  // Arguments choose their names first.
  for (const bool arguments : {true, false}) {
    for (size_t b = 0; b < buffers.size(); ++b) {
      const Storage& storage = program.storage[b];
      if ((storage.kind == Kind::kArgument) != arguments || storage.kind == Kind::kUnused) continue;
      buffers[b] = names.Add(Wish(program.buffers[b], storage));
    }
  }
  return buffers;
}

std::vector<std::string> CMemoryPrinter::Parameters(const LoweredKernel& kernel) const {
  std::vector<std::string> parameters(p_.arguments);
  const std::string global(dialect_.Qualifier(Space::kGlobal));
  const std::string pointer = absl::StrCat("* ", dialect_.Restrict(), " ");
  for (size_t b = 0; b < p_.buffers.size(); ++b) {
    const ir::Buffer& buffer = p_.buffers[b];
    if (p_.storage[b].kind != Kind::kArgument) continue;
    parameters[p_.storage[b].position] =
        absl::StrCat(global, buffer.output ? "" : "const ", dialect_.TypeName(buffer.dtype),
                     pointer, buffers_[b]);
  }
  const absl::string_view bytes = dialect_.TypeName(ir::DType::kU8);
  parameters.push_back(
      absl::StrCat(global, IsPrepack(kernel) ? "" : "const ", bytes, pointer, kPacked));
  parameters.push_back(absl::StrCat(global, bytes, pointer, kWorkspace));
  return parameters;
}

std::string CMemoryPrinter::Pointer(BufferId id, const std::string& memory, int64_t offset,
                                    Space space, bool writable) const {
  const std::string type = absl::StrCat(dialect_.PointerQualifier(space), writable ? "" : "const ",
                                        dialect_.TypeName(p_.buffers[id].dtype), "*");
  const std::string at = offset == 0 ? memory : absl::StrCat("(", memory, " + ", offset, ")");
  return absl::StrCat(type, " const ", buffers_[id], " = (", type, ")", at, ";");
}

bool CMemoryPrinter::SharedBuffersOverlap() const {
  for (const BufferId a : used_) {
    if (p_.storage[a].kind != Kind::kShared) continue;
    const int64_t begin = p_.storage[a].offset_bytes, end = begin + BytesOf(p_, a);
    for (const BufferId b : used_) {
      if (b <= a || p_.storage[b].kind != Kind::kShared) continue;
      const int64_t other = p_.storage[b].offset_bytes;
      if (other < end && begin < other + BytesOf(p_, b)) return true;
    }
  }
  return false;
}

void CMemoryPrinter::DeclareShared(const LoweredKernel& kernel, CNames& names,
                                   CLines& lines) const {
  const std::string qualifier(dialect_.Qualifier(Space::kShared));
  const bool overlap = SharedBuffersOverlap();
  const bool is_large = kernel.shared_bytes > dialect_.StaticSharedBytes();
  const std::string type = absl::StrCat(qualifier, dialect_.TypeName(ir::DType::kU8));
  std::string memory;
  if (overlap || is_large) memory = names.Add("shared_memory");
  if (overlap) lines.Add("// Buffers that are not in use at the same time share memory.");
  if (is_large) {
    lines.Add(dialect_.TypeName(ir::DType::kU8), "* const ", memory, " = ",
              prelude_.Use("hone_shared_memory"), "();");
  } else if (overlap) {
    lines.Add(type, " ", memory, "[", kernel.shared_bytes, "]",
              dialect_.Alignment(target::kBufferAlignment), ";");
  }
  for (const BufferId id : used_) {
    const Storage& storage = p_.storage[id];
    if (storage.kind != Kind::kShared) continue;
    if (overlap || is_large) {
      lines.Add(Pointer(id, memory, storage.offset_bytes, Space::kShared, /*writable=*/true));
      continue;
    }
    const auto alignment = alignments_.find(id);
    lines.Add(qualifier, dialect_.TypeName(p_.buffers[id].dtype), " ", buffers_[id], "[",
              storage.elements, "]",
              alignment == alignments_.end() ? "" : dialect_.Alignment(alignment->second), ";");
  }
}

absl::Status CMemoryPrinter::Declare(const LoweredKernel& kernel, CNames& names,
                                     CLines& lines) const {
  for (const BufferId id : used_) {
    const Storage& storage = p_.storage[id];
    switch (storage.kind) {
      case Kind::kPacked:
        lines.Add(Pointer(id, kPacked, storage.offset_bytes, Space::kGlobal, IsPrepack(kernel)));
        break;
      case Kind::kThread:
        if (!dialect_.OneThread()) {
          return absl::UnimplementedError(absl::StrCat(
              "buffer ", p_.buffers[id].name,
              " is in memory of a CPU thread; on a GPU, a thread has private arrays only"));
        }
        lines.Add(Pointer(id, kWorkspace, p_.workspace_bytes + storage.offset_bytes, Space::kGlobal,
                          /*writable=*/true));
        break;
      case Kind::kWorkspace:
        lines.Add(Pointer(id, kWorkspace, storage.offset_bytes, Space::kGlobal, /*writable=*/true));
        break;
      case Kind::kShared:
        if (dialect_.Qualifier(Space::kShared).empty()) {
          return absl::UnimplementedError(absl::StrCat(
              "buffer ", p_.buffers[id].name, " is in shared memory, which only GPUs have"));
        }
        break;
      case Kind::kArgument:
      case Kind::kStack:
      case Kind::kRegister:
      case Kind::kUnused:
        break;
    }
  }
  DeclareShared(kernel, names, lines);
  for (const BufferId id : used_) {
    if (!IsPrivate(p_.storage[id])) continue;
    const std::string size =
        IsScalar(p_, id) ? "" : absl::StrCat("[", p_.storage[id].elements, "]");
    lines.Add(dialect_.TypeName(p_.buffers[id].dtype), " ", buffers_[id], size, ";");
  }
  return absl::OkStatus();
}

bool CMemoryPrinter::ExchangesGlobal(const LoweredProgram& program, lower::StmtId body) {
  std::map<BufferId, int> writes, accesses;
  const auto visit = [&](auto&& self, lower::StmtId id) -> void {
    if (id == lower::kNoStmt) return;
    const lower::Stmt& stmt = program.stmts[id];
    for (const BufferId output : stmt.outputs) {
      ++writes[output];
      accesses[output] += stmt.reducer == ir::Reducer::kNone ? 1 : 2;
    }
    for (const ir::ExprId value : stmt.values) {
      program.pool.VisitLoads(value, [&](const ir::Expr& load) { ++accesses[load.buffer]; });
    }
    for (const lower::StmtId child : stmt.children) self(self, child);
  };
  visit(visit, body);
  return std::any_of(writes.begin(), writes.end(), [&](const auto& written) {
    const Storage& storage = program.storage[written.first];
    return storage.kind != Kind::kShared && !IsPrivate(storage) && accesses[written.first] > 1;
  });
}

}  // namespace hone::codegen
