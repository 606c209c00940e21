#include "common/lower/memory_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_abi.h"

namespace hone::lower {

using ir::BufferId;
using ir::Scalar;

MemoryModel::MemoryModel(const LoweredProgram& program)
    : program_(program), detects_races_(!program.storage.empty()) {
  enum { kPacked, kWorkspace, kThread, kRegions };
  regions_.resize(kRegions);
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const ir::Buffer& buffer = program.buffers[b];
    BufferMemory& memory = buffers_.emplace_back();
    if (program.storage.empty()) {
      memory.cells.resize(ir::ElementsOf(buffer.shape));
      continue;
    }
    const Storage& storage = program.storage[b];
    switch (storage.kind) {
      case Storage::Kind::kUnused:
        continue;
      case Storage::Kind::kArgument:
        break;
      case Storage::Kind::kPacked:
        memory.region = kPacked;
        break;
      case Storage::Kind::kWorkspace:
        memory.region = kWorkspace;
        break;
      case Storage::Kind::kThread:
        memory.region = kThread;
        memory.is_private = true;
        break;
      case Storage::Kind::kStack:
      case Storage::Kind::kRegister:
        memory.is_private = true;
        break;
    }
    memory.cells.resize(storage.elements);
    memory.elements_per_granule = target::kBufferAlignment / ir::DTypeBytes(buffer.dtype);
    memory.first_granule = storage.offset_bytes / target::kBufferAlignment;
    if (memory.region < 0) continue;
    Region& region = regions_[memory.region];
    const int64_t granules =
        (storage.elements + memory.elements_per_granule - 1) / memory.elements_per_granule;
    if (static_cast<int64_t>(region.size()) < memory.first_granule + granules) {
      region.resize(memory.first_granule + granules, -1);
    }
  }
}

void MemoryModel::EnterParallel(int64_t iterations) {
  first_task_ = task_ = end_task_;
  end_task_ = first_task_ + iterations;
}

void MemoryModel::LeaveParallel() { EnterParallel(1); }

std::string MemoryModel::NameOf(BufferId buffer, int64_t element) const {
  return absl::StrCat("element ", element, " of ", program_.buffers[buffer].name);
}

BufferId* MemoryModel::OwnerOf(BufferId buffer, int64_t element) {
  const BufferMemory& memory = buffers_[buffer];
  if (memory.region < 0) return nullptr;
  return &regions_[memory.region][memory.first_granule + element / memory.elements_per_granule];
}

absl::StatusOr<Scalar> MemoryModel::ReadAccumulated(BufferId buffer, int64_t element) {
  BufferMemory& memory = buffers_[buffer];
  Cell& cell = memory.cells[element];
  if (cell.writer == 0 || (memory.is_private && cell.writer != task_)) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(buffer, element), " is read before it is written"));
  }
  if (const BufferId* owner = OwnerOf(buffer, element); owner != nullptr && *owner != buffer) {
    return absl::FailedPreconditionError(absl::StrCat(NameOf(buffer, element), " is read after ",
                                                      program_.buffers[*owner].name,
                                                      " has overwritten it"));
  }
  if (detects_races_ && !memory.is_private) {
    if (IsOther(cell.writer)) {
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(buffer, element),
                       " is read by one iteration of a parallel loop and written by another"));
    }
    if (cell.reader < first_task_) {
      cell.reader = task_;
    } else if (cell.reader != task_) {
      cell.reader = end_task_;
    }
  }
  return cell.value;
}

absl::StatusOr<Scalar> MemoryModel::Read(BufferId buffer, int64_t element) {
  HONE_ASSIGN_OR_RETURN(const Scalar value, ReadAccumulated(buffer, element));
  const ir::DType dtype = program_.buffers[buffer].dtype;
  // Only accumulators are unrounded.
  return ir::AccumulatorOf(dtype) == dtype ? value : ir::CastTo(dtype, value);
}

absl::Status MemoryModel::Accumulate(BufferId buffer, int64_t element, Scalar value) {
  BufferMemory& memory = buffers_[buffer];
  Cell& cell = memory.cells[element];
  if (detects_races_ && !memory.is_private && (IsOther(cell.writer) || IsOther(cell.reader))) {
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(buffer, element), " is written by one iteration of a parallel loop and ",
        IsOther(cell.writer) ? "written" : "read", " by another"));
  }
  if (BufferId* owner = OwnerOf(buffer, element); owner != nullptr) *owner = buffer;
  cell.value = value;
  cell.writer = task_;
  return absl::OkStatus();
}

absl::Status MemoryModel::Write(BufferId buffer, int64_t element, Scalar value) {
  return Accumulate(buffer, element, ir::CastTo(program_.buffers[buffer].dtype, value));
}

}  // namespace hone::lower
