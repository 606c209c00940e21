#ifndef HONE_COMMON_RECORD_ARTIFACT_H_
#define HONE_COMMON_RECORD_ARTIFACT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::record {

// The result of a build, which is stored for winners: the bytes that were timed, and the texts that
// they were built from. Its digest is Sha256Of(EncodeArtifact(a)), which also names its file.
//
// Encoding, all integers little-endian: "HONEKERN", u32 version, u32 number of sections, u64 length
// of each, then the sections without gaps in the order of the fields below. Equal artifacts have
// equal bytes.
struct Artifact {
  // What a runner loads: ELF that follows common/target/kernel_abi.h, or for a GPU an encoded
  // target::GpuModule.
  std::string shared_object;
  std::string object;    // the ELF object file that the shared object was linked from, or ""
  std::string workload;  // text form
  std::string trace;     // text form with its decisions
  std::string program;   // text form, for people
  std::string target;    // text form
  // Whether a run reads each input of the workload ('1'), or only the prepack function does ('0').
  std::string reads;

  friend bool operator==(const Artifact&, const Artifact&) = default;
};

// The form of Artifact::reads.
std::string ReadsText(const std::vector<bool>& reads);
// Returns Artifact::reads. InvalidArgument: the artifact does not have `inputs` inputs.
absl::StatusOr<std::vector<bool>> InputsRead(const Artifact& artifact, size_t inputs);

inline constexpr size_t kMaxArtifactBytes = 64 << 20;

// Whether `shared_object` holds a target::GpuModule.
bool HoldsGpuModule(const Artifact& artifact);

std::string EncodeArtifact(const Artifact& artifact);

// InvalidArgument: the bytes are not an artifact, have another version, are truncated, are longer
// than their sections or kMaxArtifactBytes, or the shared object is neither an ELF file nor a
// module for a GPU; the message says which.
absl::StatusOr<Artifact> DecodeArtifact(absl::string_view bytes);

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_ARTIFACT_H_
