// Short texts from command lines and rows: digests, addresses, targets, durations, operators with
// their keys.
#include "absl/strings/str_split.h"
#include "client/cli/output/format.h"
#include "common/base/digest.h"
#include "common/operator/operator.h"
#include "common/rpc/address.h"
#include "common/target/target.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const absl::string_view text = fuzz::TextOf(data, size);
  if (const auto digest = Digest::FromHex(text); digest.ok()) {
    fuzz::Require(digest->ToHex() == text, "a digest has one text", text);
  }
  if (const auto address = rpc::Address::Parse(text); address.ok()) {
    const auto again = rpc::Address::Parse(address->ToText());
    fuzz::Require(again.ok() && *again == *address, "an address reads back", text);
  }
  if (const auto target = target::Target::FromText(text); target.ok()) {
    const auto again = target::Target::FromText(target->ToText());
    fuzz::Require(again.ok() && again->ToText() == target->ToText(), "a target reads back", text);
  }
  if (const auto duration = cli::ParseDuration(text); duration.ok()) {
    fuzz::Require(*duration > absl::ZeroDuration(), "a duration is positive", text);
  }
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  if (words.empty()) return 0;
  const auto workload = op::BuildWorkload(words[0], absl::MakeSpan(words).subspan(1));
  if (workload.ok()) {
    fuzz::Require(workload->Validate().ok(), "an operator is a valid workload", text);
  } else {
    fuzz::Require(absl::IsInvalidArgument(workload.status()) || absl::IsNotFound(workload.status()),
                  "a refusal tells its kind", workload.status().ToString());
  }
  return 0;
}
