#include "tests/worker/codegen/compiled_program.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/lower/lower.h"
#include "common/target/kernel_abi.h"
#include "worker/builder/link.h"
#include "worker/codegen/compile.h"

namespace hone::codegen {
namespace {

constexpr int64_t kGuardBytes = 4096;
constexpr unsigned char kGuard = 0xa5;

// Aligned memory between guards.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : bytes_(bytes) {
    const int64_t total = (bytes + 2 * kGuardBytes + 4095) / 4096 * 4096;
    memory_ = static_cast<unsigned char*>(std::aligned_alloc(4096, total));
    std::memset(memory_, kGuard, total);
  }
  Guarded(Guarded&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
  ~Guarded() { std::free(memory_); }
  unsigned char* data() { return memory_ + kGuardBytes; }
  bool Intact() const {
    for (int64_t i = 0; i < kGuardBytes; ++i) {
      if (memory_[i] != kGuard || memory_[kGuardBytes + bytes_ + i] != kGuard) return false;
    }
    return true;
  }

 private:
  unsigned char* memory_;
  int64_t bytes_;
};

template <typename T>
void Write(unsigned char* at, int64_t i, double value) {
  const T converted = static_cast<T>(value);
  std::memcpy(at + i * sizeof(T), &converted, sizeof(T));
}
template <typename T>
double Read(const unsigned char* at, int64_t i) {
  T value;
  std::memcpy(&value, at + i * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

void Store(unsigned char* at, ir::DType dtype, int64_t i, double value) {
  switch (dtype) {
    case ir::DType::kF32: return Write<float>(at, i, value);
    case ir::DType::kF64: return Write<double>(at, i, value);
    case ir::DType::kI8: return Write<int8_t>(at, i, value);
    case ir::DType::kU8:
    case ir::DType::kBool: return Write<uint8_t>(at, i, value);
    case ir::DType::kI32: return Write<int32_t>(at, i, value);
    case ir::DType::kI64: return Write<int64_t>(at, i, value);
    case ir::DType::kF16:
      return Write<_Float16>(at, i, value);
    case ir::DType::kBF16: {
      const auto f = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &f, 4);
      const auto high = static_cast<uint16_t>(bits >> 16);
      std::memcpy(at + i * 2, &high, 2);
      return;
    }
  }
}

double Fetch(const unsigned char* at, ir::DType dtype, int64_t i) {
  switch (dtype) {
    case ir::DType::kF32: return Read<float>(at, i);
    case ir::DType::kF64: return Read<double>(at, i);
    case ir::DType::kI8: return Read<int8_t>(at, i);
    case ir::DType::kU8:
    case ir::DType::kBool: return Read<uint8_t>(at, i);
    case ir::DType::kI32: return Read<int32_t>(at, i);
    case ir::DType::kI64: return Read<int64_t>(at, i);
    case ir::DType::kF16: return Read<_Float16>(at, i);
    case ir::DType::kBF16: {
      uint16_t high;
      std::memcpy(&high, at + i * 2, 2);
      const uint32_t bits = uint32_t{high} << 16;
      float f;
      std::memcpy(&f, &bits, 4);
      return f;
    }
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledProgram>> CompiledProgram::Load(const ir::Program& program, const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, target));
  HONE_ASSIGN_OR_RETURN(const CompiledObject object, Compile(lowered, target));
  HONE_ASSIGN_OR_RETURN(const std::string shared, builder::LinkSharedObject(object.object, {}));
  // Unloading a kernel must not unload the OpenMP runtime with its waiting threads.
  static const void* const openmp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NODELETE);
  if (openmp == nullptr) return absl::InternalError("libgomp.so.1 cannot be loaded");
  const int fd = memfd_create("kernel", MFD_CLOEXEC);
  if (fd < 0 || write(fd, shared.data(), shared.size()) != static_cast<ssize_t>(shared.size())) {
    return absl::InternalError("cannot write the shared object to memory");
  }
  auto compiled = std::unique_ptr<CompiledProgram>(new CompiledProgram);
  compiled->workload_ = program.shared_workload();
  compiled->handle_ = dlopen(absl::StrCat("/proc/self/fd/", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  if (compiled->handle_ == nullptr) return absl::InternalError(absl::StrCat("dlopen: ", dlerror()));
  return compiled;
}

CompiledProgram::~CompiledProgram() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* CompiledProgram::Symbol(const char* name) const { return dlsym(handle_, name); }

int64_t CompiledProgram::range_extent() const {
  return reinterpret_cast<target::SizeFunction>(Symbol(target::kRangeExtentSymbol))();
}
int64_t CompiledProgram::workspace_bytes() const {
  return reinterpret_cast<target::SizeFunction>(Symbol(target::kWorkspaceSymbol))();
}

absl::StatusOr<std::vector<ir::Values>> CompiledProgram::Run(absl::Span<const ir::Values> inputs) { return RunWith(inputs, -1, -1); }
absl::StatusOr<std::vector<ir::Values>> CompiledProgram::RunRange(absl::Span<const ir::Values> inputs, int64_t begin, int64_t end) {
  return RunWith(inputs, begin, end);
}

absl::StatusOr<std::vector<ir::Values>> CompiledProgram::RunWith(absl::Span<const ir::Values> inputs, int64_t begin, int64_t end) {
  std::vector<Guarded> memory;
  std::vector<void*> buffers;
  const std::vector<ir::BufferId> input_ids = workload_->Inputs(), output_ids = workload_->Outputs();
  for (size_t t = 0; t < input_ids.size(); ++t) {
    const ir::Tensor& tensor = workload_->tensors[input_ids[t]];
    memory.emplace_back(tensor.bytes());
    for (size_t e = 0; e < inputs[t].size(); ++e) Store(memory.back().data(), tensor.dtype, e, inputs[t][e]);
  }
  for (ir::BufferId id : output_ids) {
    const ir::Tensor& tensor = workload_->tensors[id];
    memory.emplace_back(tensor.bytes());
    for (int64_t e = 0; e < ir::ElementsOf(tensor.shape); ++e) {
      Store(memory.back().data(), tensor.dtype, e, ir::IsFloat(tensor.dtype) ? NAN : 77);
    }
  }
  const int64_t packed_bytes = reinterpret_cast<target::SizeFunction>(Symbol(target::kPackedSymbol))();
  memory.emplace_back(packed_bytes);
  memory.emplace_back(workspace_bytes());
  for (Guarded& buffer : memory) buffers.push_back(buffer.data());
  void* const workspace = buffers.back();
  void* const packed = buffers[buffers.size() - 2];
  const int32_t prepacked = reinterpret_cast<target::PrepackFunction>(Symbol(target::kPrepackSymbol))(buffers.data(), packed);
  int32_t code = 0;
  if (begin < 0) {
    code = reinterpret_cast<target::RunFunction>(Symbol(target::kRunSymbol))(buffers.data(), packed, workspace);
  } else {
    code = reinterpret_cast<target::RangeFunction>(Symbol(target::kRangeSymbol))(buffers.data(), packed, workspace, begin, end);
  }
  if (prepacked != 0 || code != 0) return absl::InternalError(absl::StrCat("return codes ", prepacked, " and ", code));
  for (size_t b = 0; b < memory.size(); ++b) {
    if (!memory[b].Intact()) return absl::InternalError(absl::StrCat("bytes outside buffer ", b, " were written"));
  }
  std::vector<ir::Values> outputs;
  for (size_t t = 0; t < output_ids.size(); ++t) {
    const ir::Tensor& tensor = workload_->tensors[output_ids[t]];
    ir::Values& values = outputs.emplace_back(ir::ElementsOf(tensor.shape));
    for (size_t e = 0; e < values.size(); ++e) values[e] = Fetch(memory[input_ids.size() + t].data(), tensor.dtype, e);
  }
  return outputs;
}

}  // namespace hone::codegen
