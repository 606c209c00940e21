#include "tests/oracles/memory_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_abi.h"

namespace hone::lower {

using ir::BufferId;
using ir::Scalar;

MemoryModel::MemoryModel(const LoweredProgram& program)
    : program_(program), detects_races_(!program.storage.empty() || program.IsForGpu()) {
  enum { kPacked, kWorkspace, kThread, kShared, kRegions };
  regions_.resize(kRegions);
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const ir::Buffer& buffer = program.buffers[b];
    BufferMemory& memory = buffers_.emplace_back();
    if (program.storage.empty()) {
      memory.elements = ir::ElementsOf(buffer.shape);
      memory.cells.resize(memory.elements);
      if (!program.IsForGpu()) continue;
      if (buffer.scope == ir::Scope::kLocal || buffer.scope == ir::Scope::kFragment) {
        memory.owner = Owner::kThread;
      } else if (buffer.scope == ir::Scope::kShared) {
        memory.owner = Owner::kBlock;
      }
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
        memory.owner = Owner::kThread;
        break;
      case Storage::Kind::kShared:
        memory.region = kShared;
        memory.owner = Owner::kBlock;
        break;
      case Storage::Kind::kStack:
      case Storage::Kind::kRegister:
        memory.owner = Owner::kThread;
        break;
    }
    memory.elements = storage.elements;
    memory.cells.resize(storage.elements);
    memory.elements_per_granule = target::kBufferAlignment / ir::DTypeBytes(buffer.dtype);
    memory.first_granule = storage.offset_bytes / target::kBufferAlignment;
    if (memory.region < 0) continue;
    Region& region = regions_[memory.region];
    const int64_t granules =
        (storage.elements + memory.elements_per_granule - 1) / memory.elements_per_granule;
    if (static_cast<int64_t>(region.size()) < memory.first_granule + granules) {
      region.resize(memory.first_granule + granules);
    }
  }
}

void MemoryModel::EnterBlocks(int64_t threads) {
  NextBlock();
  first_of_blocks_ = epoch_;
  threads_ = threads;
}

void MemoryModel::NextBlock() {
  first_of_block_ = ++epoch_;
  thread_ = 0;
}

std::string MemoryModel::NameOf(BufferId buffer, int64_t element) const {
  return absl::StrCat("element ", element, " of ", program_.buffers[buffer].name);
}

MemoryModel::Cell& MemoryModel::CellOf(BufferMemory& memory, int64_t element) {
  if (memory.owner != Owner::kThread || threads_ == 1) return memory.cells[element];
  const int64_t cells = memory.elements * threads_;
  if (static_cast<int64_t>(memory.cells.size()) < cells) memory.cells.resize(cells);
  return memory.cells[element * threads_ + thread_];
}

MemoryModel::Granule* MemoryModel::GranuleOf(BufferId buffer, int64_t element) {
  const BufferMemory& memory = buffers_[buffer];
  if (memory.region < 0) return nullptr;
  return &regions_[memory.region][memory.first_granule + element / memory.elements_per_granule];
}

void MemoryModel::Note(Granule& granule) {
  if (granule.last.epoch != epoch_) {
    granule.last = {epoch_, thread_, store_};
  } else if (granule.last.thread != thread_) {
    granule.last.thread = kSeveral;
  }
}

bool MemoryModel::IsConcurrent(const BufferMemory& memory, const Access& access) const {
  if (access.epoch < first_of_blocks_) return false;
  // Each block has its own shared memory.
  if (access.epoch < first_of_block_ && memory.owner == Owner::kBlock) return false;
  return access.epoch < first_of_block_ || (access.epoch == epoch_ && access.thread != thread_);
}

absl::string_view MemoryModel::Others(const Access& access) {
  raced_with_ = access.store;
  if (!program_.IsForGpu()) return "another iteration of a parallel loop";
  return access.epoch < first_of_block_ ? "another block"
                                        : "another thread, with no barrier in between";
}

absl::StatusOr<Scalar> MemoryModel::ReadAccumulated(BufferId buffer, int64_t element) {
  BufferMemory& memory = buffers_[buffer];
  Cell& cell = CellOf(memory, element);
  if (cell.writer.epoch == 0 ||
      (memory.owner != Owner::kAll && cell.writer.epoch < first_of_block_)) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(buffer, element), " is read before it is written"));
  }
  if (cell.unfinished && cell.writer.epoch >= first_of_block_) {
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(buffer, element), " is read before the wait for its asynchronous copy"));
  }
  Granule* const granule = GranuleOf(buffer, element);
  if (granule != nullptr && granule->owner != buffer) {
    return absl::FailedPreconditionError(absl::StrCat(NameOf(buffer, element), " is read after ",
                                                      program_.buffers[granule->owner].name,
                                                      " has overwritten it"));
  }
  if (granule != nullptr) Note(*granule);
  if (detects_races_ && memory.owner != Owner::kThread) {
    if (IsConcurrent(memory, cell.writer)) {
      return absl::FailedPreconditionError(absl::StrCat(
          NameOf(buffer, element), " is read, but was written by ", Others(cell.writer)));
    }
    if (cell.reader.epoch < first_of_block_) {
      cell.foreign_epoch = cell.reader.epoch;
    }
    if (cell.reader.epoch != epoch_) {
      cell.reader = {epoch_, thread_, store_};
    } else if (cell.reader.thread != thread_) {
      cell.reader.thread = kSeveral;
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
  Cell& cell = CellOf(memory, element);
  if (detects_races_ && memory.owner != Owner::kThread) {
    if (IsConcurrent(memory, cell.writer)) {
      return absl::FailedPreconditionError(absl::StrCat(
          NameOf(buffer, element), " is written, but was written by ", Others(cell.writer)));
    }
    const Access foreign{cell.foreign_epoch, kSeveral};
    if (IsConcurrent(memory, cell.reader) || IsConcurrent(memory, foreign)) {
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(buffer, element), " is written, but was read by ",
                       Others(IsConcurrent(memory, cell.reader) ? cell.reader : foreign)));
    }
  }
  if (cell.unfinished && cell.writer.epoch >= first_of_block_) {
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(buffer, element), " is written before the wait for its asynchronous copy"));
  }
  cell.unfinished = false;
  if (Granule* const granule = GranuleOf(buffer, element); granule != nullptr) {
    if (granule->owner >= 0 && granule->owner != buffer) {
      const std::string& before = program_.buffers[granule->owner].name;
      if (granule->unfinished > 0) {
        return absl::FailedPreconditionError(
            absl::StrCat(NameOf(buffer, element), " is written before the wait for ", before,
                         "'s asynchronous copies to the same memory"));
      }
      // Another thread may still need the former content.
      if (memory.owner == Owner::kBlock && IsConcurrent(memory, granule->last)) {
        return absl::FailedPreconditionError(absl::StrCat(NameOf(buffer, element),
                                                          " is written where ", before,
                                                          " was used by ", Others(granule->last)));
      }
    }
    granule->owner = buffer;
    Note(*granule);
  }
  cell.value = value;
  cell.writer = {epoch_, thread_, store_};
  return absl::OkStatus();
}

void MemoryModel::MakeAsync(BufferId buffer, int64_t element) {
  CellOf(buffers_[buffer], element).unfinished = true;
  if (Granule* const granule = GranuleOf(buffer, element)) ++granule->unfinished;
  copies_.back().emplace_back(buffer, element);
}

void MemoryModel::WaitForCopies(int64_t pending) {
  while (static_cast<int64_t>(copies_.size()) > pending + 1) {
    for (const auto& [buffer, element] : copies_.front()) {
      Cell& cell = CellOf(buffers_[buffer], element);
      cell.unfinished = false;
      cell.writer.epoch = epoch_;
      if (Granule* const granule = GranuleOf(buffer, element)) --granule->unfinished;
    }
    copies_.pop_front();
  }
}

bool MemoryModel::HasUnfinishedCopies() const {
  return std::ranges::any_of(copies_, [](const auto& group) { return !group.empty(); });
}

absl::Status MemoryModel::Write(BufferId buffer, int64_t element, Scalar value) {
  return Accumulate(buffer, element, ir::CastTo(program_.buffers[buffer].dtype, value));
}

}  // namespace hone::lower
