#ifndef HONE_COMMON_RECORD_REFERENCE_NAME_H_
#define HONE_COMMON_RECORD_REFERENCE_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::record {

// The name of a reference kernel, made from its workload and target. A machine without a compiler
// cannot know the digest of the artifact that a builder makes for it, so reference kernels are
// transferred by these names:
//   reference3/0123456789abcdef0123456789abcdef/x86_64-avx2-8c-01234567
// The number is the version of the kernel's buffers; reference kernels of other versions are not
// used.
struct ReferenceName {
  std::string workload_digest;  // 32 hex digits
  std::string target_key;

  std::string ToText() const;
  friend bool operator==(const ReferenceName&, const ReferenceName&) = default;
};

// Whether a text begins like such a name.
bool IsReferenceName(absl::string_view text);
// InvalidArgument: it is not such a name; the message says why.
absl::StatusOr<ReferenceName> ParseReferenceName(absl::string_view text);

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_REFERENCE_NAME_H_
