// A workload, a line "program", and a program's text: refused with line and column, or read back as
// the same program.
#include "common/ir/workload_parser.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/oracles/program_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const absl::string_view text = fuzz::TextOf(data, size);
  constexpr absl::string_view kSeparator = "\nprogram\n";
  const size_t at = text.find(kSeparator);
  if (at == absl::string_view::npos) return 0;
  auto workload = ir::ParseWorkload(text.substr(0, at + 1));
  if (!workload.ok()) return 0;
  const auto shared = std::make_shared<const ir::Workload>(*std::move(workload));
  const auto program = ir::ParseProgram(shared, text.substr(at + kSeparator.size()));
  if (!program.ok()) {
    fuzz::Require(absl::IsInvalidArgument(program.status()), "a refusal is InvalidArgument",
                  program.status().ToString());
    return 0;
  }
  const std::string printed = program->ToText();
  const auto again = ir::ParseProgram(shared, printed);
  fuzz::Require(again.ok(), "what is printed is read", again.status().ToString());
  fuzz::Require(again->StructuralDigest() == program->StructuralDigest(),
                "it reads back as the same program", printed);
  return 0;
}
