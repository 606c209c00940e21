// A workload's text is refused with line and column, or read back as the same workload.
#include "absl/strings/str_cat.h"
#include "common/ir/workload.h"
#include "common/ir/workload_parser.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const auto workload = ir::ParseWorkload(fuzz::TextOf(data, size));
  if (!workload.ok()) {
    fuzz::Require(absl::IsInvalidArgument(workload.status()), "a refusal is InvalidArgument",
                  workload.status().ToString());
    return 0;
  }
  const std::string text = workload->ToText();
  const auto again = ir::ParseWorkload(text);
  fuzz::Require(again.ok(), "what is printed is read", again.status().ToString());
  fuzz::Require(again->StructuralDigest() == workload->StructuralDigest(),
                "it reads back as the same workload", text);
  fuzz::Require(again->ToText() == text, "it prints the same again", text);
  fuzz::Require(FlopCount(*workload) >= 0, "operations are counted", text);
  return 0;
}
