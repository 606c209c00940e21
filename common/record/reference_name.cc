#include "common/record/reference_name.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/digest.h"

namespace hone::record {
namespace {

constexpr absl::string_view kPrefix = "reference3/";
constexpr size_t kMaxKey = 256;

}  // namespace

std::string ReferenceName::ToText() const {
  return absl::StrCat(kPrefix, workload_digest, "/", target_key);
}

bool IsReferenceName(absl::string_view text) { return absl::StartsWith(text, kPrefix); }

absl::StatusOr<ReferenceName> ParseReferenceName(absl::string_view text) {
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, kPrefix)) {
    return absl::InvalidArgumentError("a reference's name begins with reference3/");
  }
  const size_t slash = rest.find('/');
  const absl::string_view digest = rest.substr(0, slash);
  if (slash == absl::string_view::npos || !Digest::FromHex(digest).ok()) {
    return absl::InvalidArgumentError("a reference's name has a workload's digest and a target");
  }
  const absl::string_view key = rest.substr(slash + 1);
  const bool fits =
      !key.empty() && key.size() <= kMaxKey &&
      absl::c_all_of(key, [](unsigned char c) { return absl::ascii_isgraph(c) && c != '/'; });
  if (!fits) return absl::InvalidArgumentError("a reference's name ends with a target's key");
  return ReferenceName{std::string(digest), std::string(key)};
}

}  // namespace hone::record
