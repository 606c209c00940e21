#ifndef HONE_COMMON_RECORD_ARTIFACT_H_
#define HONE_COMMON_RECORD_ARTIFACT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::record {

// What a build gives and a winner keeps: the very bytes that were timed, and the texts they came
// from. Its digest is DigestOf(EncodeArtifact(a)); a file that holds one is named by it.
//
// Encoding, all integers little-endian: "HONEKERN", u32 version, u32 number of sections, u64 length
// of each, then the sections without gaps in the order of the fields below. Equal artifacts have
// equal bytes.
struct Artifact {
  std::string shared_object;  // ELF, follows common/target/kernel_abi.h
  std::string object;         // the ELF object file that the shared object was linked from
  std::string workload;       // text form
  std::string trace;          // text form with its decisions
  std::string program;        // readable, for a person
  std::string target;         // text form

  friend bool operator==(const Artifact&, const Artifact&) = default;
};

inline constexpr size_t kMaxArtifactBytes = 64 << 20;

std::string EncodeArtifact(const Artifact& artifact);

// InvalidArgument: not an artifact, of another version, cut off, longer than its sections or than
// kMaxArtifactBytes, or the shared object is not an ELF file; the message says which.
absl::StatusOr<Artifact> DecodeArtifact(absl::string_view bytes);

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_ARTIFACT_H_
