#ifndef HONE_WORKER_BUILDER_CODE_FACTS_H_
#define HONE_WORKER_BUILDER_CODE_FACTS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::builder {

// Static properties of machine code that predict its speed.
struct CodeFacts {
  int64_t code_bytes = 0;  // of all text sections, or of the source text
  int64_t spills = 0;      // loads from the stack in the hot loop
  double loads_per_fma =
      0;  // all loads per multiply-add in the hot loop; 0: no loop has multiply-adds
};

// Analyzes the machine code of an object file. The hot loop is the innermost loop with the most
// vector multiply-adds. Facts that cannot be read (no disassembler for the target, damaged code)
// are 0.
CodeFacts ReadCodeFacts(absl::string_view object, const target::Target& target);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_CODE_FACTS_H_
