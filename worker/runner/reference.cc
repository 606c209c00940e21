#include "worker/runner/reference.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/ir/element_bytes.h"
#include "common/ir/element_interpreter.h"
#include "common/ir/reference_workload.h"
#include "common/target/thread_pool.h"
#include "worker/runner/limits.h"
#include "worker/runner/tensor_memory.h"

namespace hone::runner {
namespace {

constexpr absl::string_view kMagic = "HONEREF2";
constexpr size_t kFilePage = 4096;
constexpr Filling kFillings[] = {Filling::kReal, Filling::kInteger};
constexpr double kInterpreterLimit = 2e7;  // points, some seconds
constexpr int kMaxSpotChecks = 256;        // per output
constexpr int64_t kSpotCheckPoints = 2'000'000;
// An element that needs more points, such as one of a chain of large reductions, is not checked.
constexpr int64_t kElementPoints = 20'000'000;

std::string Header(absl::string_view workload_digest, const Signature& signature) {
  std::string header = absl::StrCat(kMagic, workload_digest);
  const auto add = [&](uint64_t value) {
    for (int i = 0; i < 8; ++i) header.push_back(static_cast<char>(value >> 8 * i));
  };
  add(signature.outputs.size());
  for (const TensorSpec& output : signature.outputs) add(output.elements);
  header.resize((header.size() + kFilePage - 1) / kFilePage * kFilePage, '\0');
  return header;
}

// An output has values, magnitudes and, if the workload rounds intermediate values, roundings.
int TensorsPerOutput(const Signature& signature) { return signature.has_roundings ? 3 : 2; }

// f64 sums of up to 2⁵⁰ terms agree far better than this.
constexpr double kAgreement = 1e-7;

bool Close(double a, double b, double scale) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= kAgreement * scale;
}

bool Agree(ir::DType dtype, const ir::ElementValue& kernel, const ir::ElementValue& interpreter) {
  const double a = kernel.value.real(), b = interpreter.value.real();
  const double rounding = UsableRounding(interpreter.rounding);
  // A value halfway between two numbers of a short format may round to either.
  const bool values = dtype == ir::DType::kI64
                          ? kernel.value == interpreter.value
                          : Close(a, b, interpreter.magnitude + rounding / kAgreement);
  // Bounds need not agree in the last digits, because exponentials of large numbers lose them, and
  // magnitudes are those of values that may round to either side. The reference workload's bounds
  // may be larger, because it simplifies long formulas. Infinite bounds are counted by CheckBounds.
  constexpr double kBoundAgreement = 1e-3;
  const double least = interpreter.rounding * (1 - kBoundAgreement);
  const bool magnitudes = std::isinf(kernel.magnitude) ||
                          Close(kernel.magnitude, interpreter.magnitude,
                                (interpreter.magnitude * kBoundAgreement + rounding) / kAgreement);
  return values && magnitudes && (kernel.rounding >= least || std::isnan(least));
}

// Writes a file in pieces and renames it into place at the end. The name of the unfinished file is
// fixed, because only one process writes to a folder; so an aborted run leaves at most one.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path) : path_(path), temporary_(path + ".new") {
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }
  ~FileWriter() {
    if (fd_ >= 0) close(fd_);
    if (!done_) unlink(temporary_.c_str());
  }
  absl::Status Write(absl::string_view bytes) {
    if (fd_ < 0) return ErrnoStatus(errno, absl::StrCat("create ", temporary_));
    while (!bytes.empty()) {
      const ssize_t n = write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, absl::StrCat("write ", temporary_));
      bytes.remove_prefix(n);
    }
    return absl::OkStatus();
  }
  absl::Status Finish() {
    // After a power failure, the file has all of its content or does not exist.
    if (fsync(fd_) != 0) return ErrnoStatus(errno, absl::StrCat("sync ", temporary_));
    if (close(std::exchange(fd_, -1)) != 0) {
      return ErrnoStatus(errno, absl::StrCat("close ", temporary_));
    }
    if (rename(temporary_.c_str(), path_.c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("rename to ", path_));
    }
    done_ = true;
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const std::string temporary_;
  int fd_ = -1;
  bool done_ = false;
};

absl::Status TooLargeError() {
  return absl::InvalidArgumentError(
      "the workload is too large for the interpreter, and no reference kernel was given");
}

// Computes the reference outputs of one filling after the other, in memory that is laid out as the
// reference kernel's buffers.
class ReferenceMaker {
 public:
  ReferenceMaker(const ir::Workload& workload, const Signature& signature, uint64_t seed)
      : workload_(workload),
        signature_(signature),
        seed_(seed),
        outputs_(workload.Outputs()),
        input_of_tensor_(workload.tensors.size(), -1) {
    const std::vector<ir::BufferId> inputs = workload.Inputs();
    for (size_t i = 0; i < inputs.size(); ++i) input_of_tensor_[inputs[i]] = static_cast<int>(i);
  }

  absl::Status Allocate() {
    for (const TensorSpec& input : signature_.inputs) HONE_RETURN_IF_ERROR(Add(input.bytes()));
    for (int tensor = 0; tensor < TensorsPerOutput(signature_); ++tensor) {
      for (const TensorSpec& output : signature_.outputs) {
        HONE_RETURN_IF_ERROR(Add(output.elements * static_cast<int64_t>(sizeof(double))));
      }
    }
    return absl::OkStatus();
  }

  void FillInputs(Filling filling) {
    for (size_t i = 0; i < signature_.inputs.size(); ++i) {
      FillTensor(signature_.inputs[i], filling, seed_, static_cast<int>(i), buffers_[i]);
    }
    interpreter_ =
        std::make_unique<ir::ElementInterpreter>(workload_, [this](ir::BufferId id, int64_t at) {
          const int input = input_of_tensor_[id];
          return ir::ReadElement(signature_.inputs[input].dtype, buffers_[input], at);
        });
  }

  absl::Status RunKernel(const Kernel& kernel) {
    const target::KernelLibrary& library = kernel.library();
    const HoneRuntime runtime = hone_threads(KernelThreads());
    HONE_ASSIGN_OR_RETURN(const auto packed, TensorMemory::Create(library.packed_bytes(), 0));
    HONE_ASSIGN_OR_RETURN(const auto workspace,
                          TensorMemory::Create(library.WorkspaceBytes(runtime.threads), 0));
    int32_t code = target::kKernelOk;
    if (library.packed_bytes() > 0) code = library.Prepack(buffers_.data(), packed->data());
    if (code == target::kKernelOk) {
      code = library.Run(buffers_.data(), packed->data(), workspace->data(), &runtime);
    }
    if (code == target::kKernelOk) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the reference kernel returns ", code));
  }

  // Compares some elements with the interpreter.
  absl::Status SpotCheck() const {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const TensorSpec& output = signature_.outputs[o];
      Rng rng(seed_, o, 77);
      const int64_t limit = interpreter_->points() + kSpotCheckPoints;
      for (int check = 0; check < kMaxSpotChecks && interpreter_->points() < limit; ++check) {
        const auto at = static_cast<int64_t>(rng.Below(output.elements));
        const ir::ElementValue kernel = Get(o, at);
        const std::optional<ir::ElementValue> interpreted = Interpret(o, at, kElementPoints);
        if (!interpreted.has_value()) break;
        const ir::ElementValue& element = *interpreted;
        if (Agree(output.dtype, kernel, element)) continue;
        const auto text = [](const ir::ElementValue& value) {
          return absl::StrFormat("%s with magnitude %.17g and rounding %.17g", value.value.ToText(),
                                 value.magnitude, value.rounding);
        };
        return absl::DataLossError(
            absl::StrFormat("the reference kernel is wrong: %s element %d is %s, the interpreter "
                            "says %s",
                            output.name, at, text(kernel), text(element)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status InterpretAll() {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      for (int64_t i = 0; i < signature_.outputs[o].elements; ++i) {
        const std::optional<ir::ElementValue> element = Interpret(o, i, kElementPoints);
        if (!element.has_value()) return TooLargeError();
        Set(o, i, *element);
      }
    }
    return absl::OkStatus();
  }

  // Refuses an output if the check would accept every value in more than half of its elements.
  absl::Status CheckBounds() const {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const TensorSpec& output = signature_.outputs[o];
      int64_t unbounded = 0;
      for (int64_t i = 0; i < output.elements; ++i) {
        const ir::ElementValue element = Get(o, i);
        const double bound = (ir::IsFloat(output.dtype) ? element.magnitude : 0) + element.rounding;
        unbounded += std::isfinite(element.value.real()) && !std::isfinite(bound);
      }
      if (unbounded <= output.elements / 2) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "output ", output.name, " cannot be checked: rounding errors may change ", unbounded,
          " of its ", output.elements,
          " elements by any amount; causes are a division by, or the logarithm or root of, a "
          "difference that is almost 0, and formulas of thousands of operations"));
    }
    return absl::OkStatus();
  }

  absl::Status Write(FileWriter& writer) const {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      for (int tensor = 0; tensor < TensorsPerOutput(signature_); ++tensor) {
        HONE_RETURN_IF_ERROR(writer.Write(memory_[BufferOf(tensor, o)]->view()));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Add(int64_t bytes) {
    HONE_ASSIGN_OR_RETURN(memory_.emplace_back(), TensorMemory::Create(bytes, 0));
    buffers_.push_back(memory_.back()->data());
    return absl::OkStatus();
  }
  size_t BufferOf(size_t tensor, size_t output) const {
    return signature_.inputs.size() + tensor * outputs_.size() + output;
  }
  double* Data(size_t tensor, size_t output) const {
    return static_cast<double*>(buffers_[BufferOf(tensor, output)]);
  }

  ir::ElementValue Get(size_t output, int64_t at) const {
    const ir::DType dtype = ir::ReferenceDType(signature_.outputs[output].dtype);
    return {.value = ir::ReadElement(dtype, Data(0, output), at),
            .magnitude = Data(1, output)[at],
            .rounding = signature_.has_roundings ? UsableRounding(Data(2, output)[at]) : 0};
  }
  void Set(size_t output, int64_t at, const ir::ElementValue& element) {
    const ir::DType dtype = ir::ReferenceDType(signature_.outputs[output].dtype);
    ir::WriteElement(dtype, Data(0, output), at, element.value);
    Data(1, output)[at] = element.magnitude;
    if (signature_.has_roundings) Data(2, output)[at] = element.rounding;
  }
  std::optional<ir::ElementValue> Interpret(size_t output, int64_t offset,
                                            int64_t most_points) const {
    const ir::Shape& shape = workload_.tensors[outputs_[output]].shape;
    std::vector<int64_t> indices(shape.size());
    for (size_t d = shape.size(); d-- > 0;) {
      indices[d] = offset % shape[d];
      offset /= shape[d];
    }
    return interpreter_->Interpret(outputs_[output], indices, most_points);
  }

  const ir::Workload& workload_;
  const Signature& signature_;
  const uint64_t seed_;
  const std::vector<ir::BufferId> outputs_;
  std::vector<int> input_of_tensor_;
  std::vector<std::unique_ptr<TensorMemory>> memory_;
  std::vector<void*> buffers_;
  std::unique_ptr<ir::ElementInterpreter> interpreter_;  // of the current filling
};

}  // namespace

int64_t ReferenceBytes(const Signature& signature) {
  int64_t elements = 0;
  for (const TensorSpec& output : signature.outputs) elements += output.elements;
  return elements * static_cast<int64_t>(sizeof(double)) * TensorsPerOutput(signature) *
         static_cast<int64_t>(std::size(kFillings));
}

uint64_t InputSeed(absl::string_view workload_digest) { return DigestOf(workload_digest).low; }

absl::StatusOr<std::unique_ptr<Reference>> Reference::Open(const std::string& path,
                                                           absl::string_view workload_digest,
                                                           const Signature& signature) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  struct stat file;
  const std::string header = Header(workload_digest, signature);
  const size_t bytes = header.size() + static_cast<size_t>(ReferenceBytes(signature));
  const bool size_fits = fstat(fd, &file) == 0 && static_cast<size_t>(file.st_size) == bytes;
  void* const mapping =
      size_fits ? mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0) : MAP_FAILED;
  const int error_number = errno;
  close(fd);
  if (!size_fits) {
    return absl::DataLossError(
        absl::StrCat(path, " is not a reference of this workload, or is cut off"));
  }
  if (mapping == MAP_FAILED) return ErrnoStatus(error_number, absl::StrCat("map ", path));
  auto reference = std::unique_ptr<Reference>(new Reference);
  reference->mapping_ = mapping;
  reference->bytes_ = bytes;
  if (std::memcmp(mapping, header.data(), header.size()) != 0) {
    return absl::DataLossError(absl::StrCat(path, " is not a reference of this workload"));
  }
  const auto* next = reinterpret_cast<const double*>(static_cast<char*>(mapping) + header.size());
  for (size_t filling = 0; filling < std::size(kFillings); ++filling) {
    for (const TensorSpec& output : signature.outputs) {
      const double* const roundings = next + 2 * output.elements;
      reference->expected_.push_back({.dtype = ir::ReferenceDType(output.dtype),
                                      .values = next,
                                      .magnitudes = next + output.elements,
                                      .roundings = signature.has_roundings ? roundings : nullptr});
      next += TensorsPerOutput(signature) * output.elements;
    }
  }
  return reference;
}

Reference::~Reference() {
  if (mapping_ != nullptr) munmap(mapping_, bytes_);
}

Expected Reference::Of(Filling filling, int output) const {
  const size_t outputs = expected_.size() / std::size(kFillings);
  return expected_[static_cast<size_t>(filling) * outputs + output];
}

absl::Status MakeReference(const ir::Workload& workload, absl::string_view workload_digest,
                           const Kernel* kernel, const std::string& path) {
  const Signature signature = SignatureOf(workload);
  HONE_RETURN_IF_ERROR(ir::CheckReferenceBytes(workload));
  double operations = 0;
  for (const TensorSpec& output : signature.outputs) {
    operations += static_cast<double>(output.elements) * signature.terms;
  }
  if (kernel == nullptr && operations > kInterpreterLimit) {
    return TooLargeError();
  }
  ReferenceMaker maker(workload, signature, InputSeed(workload_digest));
  HONE_RETURN_IF_ERROR(maker.Allocate());
  FileWriter writer(path);
  HONE_RETURN_IF_ERROR(writer.Write(Header(workload_digest, signature)));
  for (const Filling filling : kFillings) {
    maker.FillInputs(filling);
    if (kernel != nullptr) {
      HONE_RETURN_IF_ERROR(maker.RunKernel(*kernel));
      HONE_RETURN_IF_ERROR(maker.SpotCheck());
    } else {
      HONE_RETURN_IF_ERROR(maker.InterpretAll());
    }
    if (filling == Filling::kReal) HONE_RETURN_IF_ERROR(maker.CheckBounds());
    HONE_RETURN_IF_ERROR(maker.Write(writer));
  }
  return writer.Finish();
}

}  // namespace hone::runner
