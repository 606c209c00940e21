#ifndef HONE_TESTS_FUZZ_HANDLERS_MUTATOR_H_
#define HONE_TESTS_FUZZ_HANDLERS_MUTATOR_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/base/rng.h"

namespace hone::fuzz {

// Mutates a script as a caller might: repeats, moves and drops calls, changes their role or time,
// and gives fields of their messages other values, including values from other calls. Sometimes it
// makes bytes that are not a message. Blind changes of bytes would seldom leave a valid message.
// Deterministic for the generator's state. Returns "" if the script has no call.
std::string MutateScript(absl::string_view script, Rng& rng);

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_HANDLERS_MUTATOR_H_
