#ifndef HONE_TESTS_FUZZ_HANDLERS_MUTATOR_H_
#define HONE_TESTS_FUZZ_HANDLERS_MUTATOR_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/base/rng.h"

namespace hone::fuzz {

// Another script, made of this one as a caller might: calls again, elsewhere, left out, by another
// role or later; fields of their messages with other values, among them those of other calls; now
// and then bytes that are no message. Bytes changed blindly seldom leave a message that is read at
// all. The same generator gives the same script. "" of what holds no call.
std::string MutateScript(absl::string_view script, Rng& rng);

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_HANDLERS_MUTATOR_H_
