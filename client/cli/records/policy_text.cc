#include "client/cli/records/policy_text.h"

#include "absl/strings/str_cat.h"
#include "common/base/counted.h"

namespace hone::cli {

std::string PolicyText(const record::Policy& policy) {
  const record::Policy usual;
  std::string text = policy.name == "screen"    ? "search"
                     : policy.name == "confirm" ? "confirmation"
                                                : policy.name;
  if (policy.cache != usual.cache) absl::StrAppend(&text, ", ", policy.cache, " caches");
  if (policy.threads != usual.threads) {
    absl::StrAppend(&text, ", ", Counted(policy.threads, "thread"));
  }
  return text;
}

}  // namespace hone::cli
