#ifndef HONE_WORKER_RUNNER_REFERENCE_H_
#define HONE_WORKER_RUNNER_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/ir/dtype.h"
#include "common/ir/reference_workload.h"
#include "common/ir/workload.h"
#include "worker/runner/check.h"
#include "worker/runner/inputs.h"
#include "worker/runner/kernel.h"
#include "worker/runner/signature.h"

namespace hone::runner {

// References that would take more than this are sampled: only some elements of the outputs are
// computed and compared.
inline constexpr int64_t kWholeReferenceBytes = int64_t{2} << 30;

// A workload's reference outputs in a file, mapped read-only and shared by all processes that check
// against it.
//
// Format, little-endian: "HONEREF3"; the key, 32 characters; u64 number of outputs; for each output
// u64 elements, u64 sampled elements (0: all of them) and u64 flags (bit f: filling f is narrow);
// zeros up to a multiple of 4096 bytes. Then for each sampled output the i64 positions of its
// elements. Then for each filling (kReal, kInteger) and each output: values, magnitudes and, if the
// workload rounds intermediate values, roundings. Each begins at a multiple of 8 bytes. If they are
// narrow, values are f32 for floats, i64 for i64 and i32 for other integers, and the others are
// f32, rounded up; otherwise values are f64, or i64 for i64, and the others are f64. They are
// narrow unless the output is f64 or a finite number exceeds the range of f32.
class Reference {
 public:
  // NotFound: no such file. DataLoss: truncated, or not a reference of this key and workload.
  static absl::StatusOr<std::unique_ptr<Reference>> Open(const std::string& path,
                                                         absl::string_view key,
                                                         const Signature& signature);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  Expected Of(Filling filling, int output) const;
  // Says how many elements of which outputs are compared: "8192 of 402653184 elements of C were
  // compared"; "" if it is all of them.
  const std::string& sampled() const { return sampled_; }

 private:
  Reference() = default;
  void* mapping_ = nullptr;
  size_t bytes_ = 0;
  std::vector<Expected> expected_;  // by filling, then output
  std::string sampled_;
};

// Returns the size of such a file in bytes if all elements are computed, without its header.
int64_t ReferenceBytes(const Signature& signature);
// Returns the memory that a process needs to make the file, including the inputs.
int64_t BytesToMakeReference(const Signature& signature, int64_t whole_bytes);

// Makes the file by running the reference kernel, whose buffers are those of ir::ReferenceWorkload.
// The interpreter recomputes some hundred elements as a check. If `kernel` is null, the interpreter
// computes everything, up to some million operations. If ReferenceBytes exceeds `whole_bytes`, the
// interpreter computes some thousand elements of each output, one in each of as many equal parts of
// the output and those at its corners, as many as 10⁸ operations allow. DataLoss: kernel and
// interpreter disagree; the message names the element. ResourceExhausted: no memory, or the disk is
// full. InvalidArgument: the bounds on most elements of an output are infinite; no kernel was given
// and the workload is too large for the interpreter; the elements to sample take too many
// operations; or the kernel refuses to run.
//
// `give_way` is called every few milliseconds, except while a kernel of one thread runs. Its error
// ends the computation and is returned.
absl::Status MakeReference(
    const ir::Workload& workload, const Inputs& inputs, const Kernel* kernel,
    const std::string& path, int64_t whole_bytes = kWholeReferenceBytes,
    absl::FunctionRef<absl::Status()> give_way = [] { return absl::OkStatus(); });

// The parts of the format, for reference_maker.cc, which writes it, and reference.cc.
inline constexpr absl::string_view kReferenceMagic = "HONEREF3";
inline constexpr size_t kReferencePage = 4096;
inline constexpr Filling kFillings[] = {Filling::kReal, Filling::kInteger};

// How a file keeps an output.
struct KeptOutput {
  int64_t elements = 0;
  int64_t sampled = 0;  // 0: all
  uint64_t narrow = 0;  // bit f: filling f
  int64_t Count() const { return sampled > 0 ? sampled : elements; }
  bool IsNarrow(Filling filling) const { return narrow >> static_cast<int>(filling) & 1; }
};

inline size_t ReferenceHeaderBytes(size_t outputs) {
  const size_t bytes = kReferenceMagic.size() + 32 + 8 * (1 + 3 * outputs);
  return (bytes + kReferencePage - 1) / kReferencePage * kReferencePage;
}

inline std::string ReferenceHeader(absl::string_view key, const std::vector<KeptOutput>& outputs) {
  std::string header = absl::StrCat(kReferenceMagic, key);
  const auto add = [&](uint64_t value) {
    for (int i = 0; i < 8; ++i) header.push_back(static_cast<char>(value >> 8 * i));
  };
  add(outputs.size());
  for (const KeptOutput& output : outputs) {
    add(output.elements);
    add(output.sampled);
    add(output.narrow);
  }
  header.resize(ReferenceHeaderBytes(outputs.size()), '\0');
  return header;
}

inline int64_t Padded(int64_t bytes) { return (bytes + 7) / 8 * 8; }

inline ir::DType KeptDType(ir::DType dtype, bool narrow) {
  if (!narrow || dtype == ir::DType::kI64) return ir::ReferenceDType(dtype);
  return ir::IsFloat(dtype) ? ir::DType::kF32 : ir::DType::kI32;
}

inline int64_t ValueBytes(ir::DType dtype, const KeptOutput& kept, Filling filling) {
  return Padded(kept.Count() * ir::DTypeBytes(KeptDType(dtype, kept.IsNarrow(filling))));
}
inline int64_t BoundBytes(const KeptOutput& kept, Filling filling) {
  return Padded(kept.Count() * (kept.IsNarrow(filling) ? 4 : 8));
}

// An output has values, magnitudes and, if the workload rounds intermediate values, roundings.
inline int TensorsPerOutput(const Signature& signature) { return signature.has_roundings ? 3 : 2; }

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_REFERENCE_H_
