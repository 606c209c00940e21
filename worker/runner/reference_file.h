#ifndef HONE_WORKER_RUNNER_REFERENCE_FILE_H_
#define HONE_WORKER_RUNNER_REFERENCE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/ir/dtype.h"
#include "common/ir/reference_workload.h"
#include "worker/runner/elements.h"
#include "worker/runner/signature.h"

// The format of a reference's file, which reference_maker.cc writes and reference.cc reads: a
// header, the positions of sampled elements, and for each filling and output the values,
// magnitudes and roundings.
namespace hone::runner {

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

#endif  // HONE_WORKER_RUNNER_REFERENCE_FILE_H_
