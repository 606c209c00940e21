#ifndef HONE_WORKER_COMPILE_C_C_MEMORY_H_
#define HONE_WORKER_COMPILE_C_C_MEMORY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/ir/workload.h"
#include "worker/compile/c/c_lines.h"
#include "worker/compile/c/c_names.h"
#include "worker/compile/c/c_prelude.h"
#include "worker/compile/c/dialect.h"
#include "worker/compile/lower/lowered.h"

// Properties of buffers in the printed text.
namespace hone::codegen {

// Returns the strides of a buffer in elements, outermost first. They only affect how offsets are
// written, not their values.
inline ir::Shape StridesOf(const lower::LoweredProgram& program, ir::BufferId buffer) {
  if (!program.storage[buffer].strides.empty()) return program.storage[buffer].strides;
  const ir::Shape& shape = program.buffers[buffer].shape;
  ir::Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// Returns whether a buffer is printed as a variable: it is private and has one element.
inline bool IsScalar(const lower::LoweredProgram& program, ir::BufferId buffer) {
  const lower::Storage& storage = program.storage[buffer];
  return storage.elements == 1 && (storage.kind == lower::Storage::Kind::kStack ||
                                   storage.kind == lower::Storage::Kind::kRegister);
}

// Returns names for all buffers of a program: the names of the workload's tensors, and "A_shared"
// or "A_local" for copies in shared or private memory.
std::vector<std::string> NameBuffers(const lower::LoweredProgram& program, CNames& names);

// Prints the declarations of the buffers that a kernel uses.
class CMemoryPrinter {
 public:
  // All arguments must outlive this object. `alignments`: the alignments, in bytes, that statements
  // require of buffers in shared memory.
  CMemoryPrinter(const lower::LoweredProgram& program, const CDialect& dialect, CPrelude& prelude,
                 const std::vector<std::string>& buffers, const std::set<ir::BufferId>& used,
                 const std::map<ir::BufferId, int64_t>& alignments)
      : p_(program),
        dialect_(dialect),
        prelude_(prelude),
        buffers_(buffers),
        used_(used),
        alignments_(alignments) {}

  // Returns the parameters, one for each line.
  std::vector<std::string> Parameters(const lower::LoweredKernel& kernel) const;
  // Adds a declaration for each buffer except the arguments. Unimplemented: the dialect does not
  // have this kind of memory.
  absl::Status Declare(const lower::LoweredKernel& kernel, CNames& names, CLines& lines) const;

  // Returns whether threads may exchange data in global memory: a buffer there is written, and also
  // read or written again.
  static bool ExchangesGlobal(const lower::LoweredProgram& program, lower::StmtId body);

 private:
  std::string Pointer(ir::BufferId id, const std::string& memory, int64_t offset,
                      CDialect::Space space, bool writable) const;
  bool SharedBuffersOverlap() const;
  void DeclareShared(const lower::LoweredKernel& kernel, CNames& names, CLines& lines) const;

  const lower::LoweredProgram& p_;
  const CDialect& dialect_;
  CPrelude& prelude_;
  const std::vector<std::string>& buffers_;
  const std::set<ir::BufferId>& used_;
  const std::map<ir::BufferId, int64_t>& alignments_;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_MEMORY_H_
