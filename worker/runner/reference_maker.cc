// Makes references: MakeReference of reference.h.
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "common/ir/interpreter.h"
#include "common/ir/reference_workload.h"
#include "common/target/loop_parts.h"
#include "common/target/thread_pool.h"
#include "worker/runner/limits.h"
#include "worker/runner/reference.h"
#include "worker/runner/tensor_memory.h"

namespace hone::runner {
namespace {

constexpr double kInterpreterLimit = 2e7;  // points, some seconds
constexpr int kMaxSpotChecks = 256;        // per output
constexpr int64_t kSpotCheckPoints = 2'000'000;
// An element that needs more points, such as one of a chain of large reductions, is not checked.
constexpr int64_t kElementPoints = 20'000'000;
// Sampled elements of each output, and the points of all of them.
constexpr int64_t kMostSamples = 16'384;
constexpr int64_t kFewestSamples = 128;
constexpr int64_t kSampledPoints = 100'000'000;  // some ten seconds
constexpr size_t kMostCornerRank = 6;            // of an output whose corners are sampled
// Give-way points: after so many elements of inputs that the interpreter reads, some milliseconds,
// and after so many written bytes.
constexpr int64_t kReadsAtOnce = 1 << 16;
constexpr size_t kBytesAtOnce = size_t{4} << 20;

// Whether f32 has the range of a number.
bool IsInRangeOfF32(double value) {
  return !std::isfinite(value) || std::fabs(value) <= std::numeric_limits<float>::max();
}

float RoundedUp(double bound) {
  const auto rounded = static_cast<float>(bound);
  return rounded < bound ? std::nextafter(rounded, std::numeric_limits<float>::infinity())
                         : rounded;
}

// f64 sums of up to 2⁵⁰ terms agree far better than this.
constexpr double kAgreement = 1e-7;

// Results that are denormal may differ by the smallest number.
bool Close(double a, double b, double scale) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b ||
         std::fabs(a - b) <= kAgreement * scale + 4 * std::numeric_limits<double>::denorm_min();
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
  // Writes the beginning of the file again.
  absl::Status Rewrite(absl::string_view begin) {
    const ssize_t n = pwrite(fd_, begin.data(), begin.size(), 0);
    if (n == static_cast<ssize_t>(begin.size())) return absl::OkStatus();
    return ErrnoStatus(n < 0 ? errno : EIO, absl::StrCat("write ", temporary_));
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

uint64_t SeedOfSystem() {
  uint64_t seed = 0;
  // Never fails with so few bytes, once the system has started.
  while (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
  }
  return seed;
}

absl::Status TooLargeError() {
  return absl::InvalidArgumentError(
      "the workload is too large for the interpreter, and no reference kernel was given");
}

// The elements of an output to compute, in ascending order: one in each of `count` equal parts, so
// that every large part of a wrong output is found, and the corners, where padding and remainders
// of tiles are.
std::vector<int64_t> SampledPositions(const ir::Shape& shape, int64_t count, uint64_t seed) {
  const int64_t elements = ir::ElementsOf(shape);
  std::vector<int64_t> positions;
  Rng rng(seed, 78);
  for (int64_t part = 0; part < count; ++part) {
    const auto at = [&](int64_t i) {
      return static_cast<int64_t>(static_cast<absl::int128>(elements) * i / count);
    };
    if (at(part + 1) == at(part)) continue;
    positions.push_back(at(part) + static_cast<int64_t>(rng.Below(at(part + 1) - at(part))));
  }
  const size_t rank = std::min(shape.size(), kMostCornerRank);
  for (size_t corner = 0; corner < size_t{1} << rank; ++corner) {
    int64_t position = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool last = d < rank && (corner >> d & 1);
      position = position * shape[d] + (last ? shape[d] - 1 : 0);
    }
    positions.push_back(position);
  }
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

// Computes the reference outputs of one filling after the other, in memory that is laid out as the
// reference kernel's buffers.
class ReferenceMaker {
 public:
  // If `samples`, only the elements that ChoosePositions chooses are computed.
  ReferenceMaker(const ir::Workload& workload, const Signature& signature, const Inputs& inputs,
                 bool samples, absl::FunctionRef<absl::Status()> give_way)
      : workload_(workload),
        signature_(signature),
        inputs_(inputs),
        give_way_(give_way),
        seed_(SeedOfSystem()),
        outputs_(workload.Outputs()),
        kept_(outputs_.size()),
        samples_(samples),
        positions_(outputs_.size()),
        input_of_tensor_(workload.tensors.size(), -1) {
    const std::vector<ir::BufferId> ids = workload.Inputs();
    for (size_t i = 0; i < ids.size(); ++i) input_of_tensor_[ids[i]] = static_cast<int>(i);
    for (size_t o = 0; o < outputs_.size(); ++o) kept_[o].elements = signature.outputs[o].elements;
  }

  absl::Status AllocateInputs() {
    for (const TensorSpec& input : signature_.inputs) HONE_RETURN_IF_ERROR(Add(input.bytes()));
    return absl::OkStatus();
  }

  absl::Status AllocateOutputs() {
    for (int tensor = 0; tensor < TensorsPerOutput(signature_); ++tensor) {
      for (const KeptOutput& kept : kept_) {
        HONE_RETURN_IF_ERROR(Add(kept.Count() * static_cast<int64_t>(sizeof(double))));
      }
    }
    return absl::OkStatus();
  }

  absl::Status FillInputs(Filling filling) {
    for (size_t i = 0; i < signature_.inputs.size(); ++i) {
      inputs_.Fill(signature_, filling, static_cast<int>(i), buffers_[i]);
      HONE_RETURN_IF_ERROR(give_way_());
    }
    interpreter_ =
        std::make_unique<ir::ElementInterpreter>(workload_, [this](ir::BufferId id, int64_t at) {
          if (++reads_ % kReadsAtOnce == 0 && stopped_.ok()) stopped_ = give_way_();
          const int input = input_of_tensor_[id];
          return ir::ReadElement(signature_.inputs[input].dtype, buffers_[input], at);
        });
    return absl::OkStatus();
  }

  // Chooses as many elements of each output as the interpreter can compute in a reasonable time.
  // REQUIRES: the inputs are filled, and the outputs are not allocated yet.
  absl::Status ChoosePositions() {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const ir::Shape& shape = workload_.tensors[outputs_[o]].shape;
      int64_t count = std::min(kMostSamples, signature_.outputs[o].elements);
      // How many points an element takes, counting those that it shares with others only once.
      const std::vector<int64_t> trial = SampledPositions(shape, kFewestSamples / 4, seed_ + 1);
      const int64_t before = interpreter_->points();
      for (const int64_t at : trial) {
        const bool computed = Interpret(o, at, kElementPoints).has_value();
        HONE_RETURN_IF_ERROR(stopped_);
        if (!computed || interpreter_->points() - before > kSampledPoints)
          return TooLargeToSample(o);
      }
      const double per_element =
          static_cast<double>(interpreter_->points() - before) / static_cast<double>(trial.size());
      const double affordable = static_cast<double>(kSampledPoints) /
                                static_cast<double>(outputs_.size()) / std::max(per_element, 1.0);
      if (affordable < kFewestSamples) return TooLargeToSample(o);
      count = std::min(count, static_cast<int64_t>(affordable));
      positions_[o] = SampledPositions(shape, count, seed_);
      kept_[o].sampled = static_cast<int64_t>(positions_[o].size());
    }
    return absl::OkStatus();
  }

  absl::Status RunKernel(const Kernel& kernel) {
    const target::KernelLibrary& library = kernel.library();
    const HoneRuntime threads = hone_threads(KernelThreads());
    target::LoopParts parts(threads, give_way_);
    const HoneRuntime& runtime = parts.runtime();
    HONE_ASSIGN_OR_RETURN(const auto packed, TensorMemory::Create(library.packed_bytes(), 0));
    HONE_ASSIGN_OR_RETURN(const auto workspace,
                          TensorMemory::Create(library.WorkspaceBytes(runtime.threads), 0));
    int32_t code = target::kKernelOk;
    if (library.packed_bytes() > 0) code = library.Prepack(buffers_.data(), packed->data());
    if (code == target::kKernelOk) {
      code = library.Run(buffers_.data(), packed->data(), workspace->data(), &runtime);
    }
    if (code == target::kKernelOk) return parts.status();
    return absl::InvalidArgumentError(absl::StrCat("the reference kernel returns ", code));
  }

  // Compares some elements with the interpreter.
  absl::Status SpotCheck() const {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const TensorSpec& output = signature_.outputs[o];
      Rng rng(SeedOfSystem(), o, 77);  // drawn after the kernel has run, which cannot foresee it
      const int64_t limit = interpreter_->points() + kSpotCheckPoints;
      for (int check = 0; check < kMaxSpotChecks && interpreter_->points() < limit; ++check) {
        const auto at = static_cast<int64_t>(rng.Below(output.elements));
        const ir::ElementValue kernel = Get(o, at);
        const std::optional<ir::ElementValue> interpreted = Interpret(o, at, kElementPoints);
        HONE_RETURN_IF_ERROR(stopped_);
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

  // Computes all elements, or those that are sampled.
  absl::Status InterpretAll() {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      for (int64_t i = 0; i < kept_[o].Count(); ++i) {
        const int64_t at = samples_ ? positions_[o][i] : i;
        const std::optional<ir::ElementValue> element = Interpret(o, at, kElementPoints);
        HONE_RETURN_IF_ERROR(stopped_);
        if (!element.has_value()) return samples_ ? TooLargeToSample(o) : TooLargeError();
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
      for (int64_t i = 0; i < kept_[o].Count(); ++i) {
        const ir::ElementValue element = Get(o, i);
        const double bound = (ir::IsFloat(output.dtype) ? element.magnitude : 0) + element.rounding;
        unbounded += std::isfinite(element.value.real()) && !std::isfinite(bound);
      }
      if (unbounded <= kept_[o].Count() / 2) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "output ", output.name, " cannot be checked: rounding errors may change ", unbounded,
          " of its ", kept_[o].Count(), samples_ ? " sampled" : "",
          " elements by any amount; causes are a division by, or the logarithm or root of, a "
          "difference that is almost 0, and formulas of thousands of operations"));
    }
    return absl::OkStatus();
  }

  // Writes the header, and again at the end, when it is known which fillings are narrow.
  std::string Begin() const { return ReferenceHeader(inputs_.key(), kept_); }
  absl::Status WritePositions(FileWriter& writer) const {
    for (const std::vector<int64_t>& positions : positions_) {
      HONE_RETURN_IF_ERROR(writer.Write(
          {reinterpret_cast<const char*>(positions.data()), positions.size() * sizeof(int64_t)}));
    }
    return absl::OkStatus();
  }
  absl::Status Write(Filling filling, FileWriter& writer) {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const ir::DType dtype = signature_.outputs[o].dtype;
      const bool narrow = IsNarrow(o);
      if (narrow) kept_[o].narrow |= uint64_t{1} << static_cast<int>(filling);
      for (int tensor = 0; tensor < TensorsPerOutput(signature_); ++tensor) {
        const bool values = tensor == 0;
        if (!narrow || (values && dtype == ir::DType::kI64)) {
          HONE_RETURN_IF_ERROR(WriteInPieces(memory_[BufferOf(tensor, o)]->view(), writer));
        } else if (values && !ir::IsFloat(dtype)) {
          HONE_RETURN_IF_ERROR(WriteAs<int32_t>(tensor, o, writer, [](double value) {
            return static_cast<int32_t>(static_cast<int64_t>(value));
          }));
        } else if (values) {
          HONE_RETURN_IF_ERROR(WriteAs<float>(
              tensor, o, writer, [](double value) { return static_cast<float>(value); }));
        } else {
          HONE_RETURN_IF_ERROR(WriteAs<float>(tensor, o, writer, RoundedUp));
        }
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
  absl::Status TooLargeToSample(size_t output) const {
    return absl::InvalidArgumentError(
        absl::StrCat("output ", signature_.outputs[output].name,
                     " is too large for a reference of all elements, and each element takes too "
                     "many operations to compute some of them"));
  }

  // Whether the numbers of an output keep their range in 32 bits.
  bool IsNarrow(size_t output) const {
    const ir::DType dtype = signature_.outputs[output].dtype;
    if (dtype == ir::DType::kF64) return false;
    const int64_t count = kept_[output].Count();
    for (int tensor = dtype == ir::DType::kI64 ? 1 : 0; tensor < TensorsPerOutput(signature_);
         ++tensor) {
      const double* const data = Data(tensor, output);
      if (!std::all_of(data, data + count, IsInRangeOfF32)) return false;
    }
    return true;
  }

  absl::Status WriteInPieces(absl::string_view bytes, FileWriter& writer) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kBytesAtOnce))) {
      HONE_RETURN_IF_ERROR(writer.Write(bytes.substr(0, kBytesAtOnce)));
      HONE_RETURN_IF_ERROR(give_way_());
    }
    return absl::OkStatus();
  }

  // Writes a tensor of an output with its numbers converted, in pieces.
  template <typename To, typename Convert>
  absl::Status WriteAs(size_t tensor, size_t output, FileWriter& writer, const Convert& convert) {
    constexpr int64_t kPiece = 1 << 16;  // even, so that only the last piece is padded
    std::vector<To> piece;
    const double* const data = Data(tensor, output);
    const int64_t count = kept_[output].Count();
    for (int64_t begin = 0; begin < count; begin += kPiece) {
      const int64_t end = std::min(count, begin + kPiece);
      piece.assign((end - begin + 1) / 2 * 2, To());
      std::transform(data + begin, data + end, piece.begin(), convert);
      HONE_RETURN_IF_ERROR(
          writer.Write({reinterpret_cast<const char*>(piece.data()), piece.size() * sizeof(To)}));
      HONE_RETURN_IF_ERROR(give_way_());
    }
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
  const Inputs& inputs_;
  const absl::FunctionRef<absl::Status()> give_way_;
  int64_t reads_ = 0;     // of inputs, by the interpreter
  absl::Status stopped_;  // the error of give_way_ while the interpreter ran
  const uint64_t seed_;   // for the elements to sample
  const std::vector<ir::BufferId> outputs_;
  std::vector<KeptOutput> kept_;
  const bool samples_;
  std::vector<std::vector<int64_t>> positions_;  // if sampled, by output
  std::vector<int> input_of_tensor_;
  std::vector<std::unique_ptr<TensorMemory>> memory_;
  std::vector<void*> buffers_;
  std::unique_ptr<ir::ElementInterpreter> interpreter_;  // of the current filling
};

}  // namespace

absl::Status MakeReference(const ir::Workload& workload, const Inputs& inputs, const Kernel* kernel,
                           const std::string& path, int64_t whole_bytes,
                           absl::FunctionRef<absl::Status()> give_way) {
  const Signature signature = SignatureOf(workload);
  const bool samples = ReferenceBytes(signature) > whole_bytes;
  double operations = 0;
  for (const TensorSpec& output : signature.outputs) {
    operations += static_cast<double>(output.elements) * signature.terms;
  }
  if (!samples && kernel == nullptr && operations > kInterpreterLimit) {
    return TooLargeError();
  }
  ReferenceMaker maker(workload, signature, inputs, samples, give_way);
  HONE_RETURN_IF_ERROR(maker.AllocateInputs());
  HONE_RETURN_IF_ERROR(maker.FillInputs(Filling::kReal));
  if (samples) HONE_RETURN_IF_ERROR(maker.ChoosePositions());
  HONE_RETURN_IF_ERROR(maker.AllocateOutputs());
  FileWriter writer(path);
  HONE_RETURN_IF_ERROR(writer.Write(maker.Begin()));
  HONE_RETURN_IF_ERROR(maker.WritePositions(writer));
  for (const Filling filling : kFillings) {
    if (filling != Filling::kReal) HONE_RETURN_IF_ERROR(maker.FillInputs(filling));
    if (kernel != nullptr && !samples) {
      HONE_RETURN_IF_ERROR(maker.RunKernel(*kernel));
      HONE_RETURN_IF_ERROR(maker.SpotCheck());
    } else {
      HONE_RETURN_IF_ERROR(maker.InterpretAll());
    }
    if (filling == Filling::kReal) HONE_RETURN_IF_ERROR(maker.CheckBounds());
    HONE_RETURN_IF_ERROR(maker.Write(filling, writer));
  }
  HONE_RETURN_IF_ERROR(writer.Rewrite(maker.Begin()));
  return writer.Finish();
}

}  // namespace hone::runner
