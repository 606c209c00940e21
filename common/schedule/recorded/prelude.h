// Included by force before every source of hone_recorded (CMakeLists.txt), and by nothing else.
//
// The sources of common/ir and common/schedule are compiled a second time, in the namespace
// hone_recorded, with recording numbers where they say int64_t. So the replay that is recorded is
// the concrete one, statement for statement, and nothing of what makes a program is written twice.
// All headers that those sources include from outside come first.
#ifndef HONE_COMMON_SCHEDULE_RECORDED_PRELUDE_H_
#define HONE_COMMON_SCHEDULE_RECORDED_PRELUDE_H_

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/schedule/recorded/arithmetic.h"
#include "common/schedule/recorded/number.h"
#include "common/schedule/recorded/number_functions.h"

namespace hone_recorded {

using namespace hone;

// Digests are of programs with numbers; a recorded one has none.
class DigestBuilder {
 public:
  template <typename T>
  DigestBuilder& Add(const T&) {
    return *this;
  }
  Digest Finish() const { return {}; }
};

namespace ir {

inline recorded::Number FloorDivInt(recorded::Number a, recorded::Number b) {
  if (a.step() >= 0 || b.step() >= 0)
    return recorded::Number::Record(recorded::Op::kFloorDiv, a, b);
  return recorded::Evaluate(recorded::Op::kFloorDiv, a.recorded_value(), b.recorded_value());
}
inline recorded::Number FloorModInt(recorded::Number a, recorded::Number b) {
  if (a.step() >= 0 || b.step() >= 0)
    return recorded::Number::Record(recorded::Op::kFloorMod, a, b);
  return recorded::Evaluate(recorded::Op::kFloorMod, a.recorded_value(), b.recorded_value());
}

}  // namespace ir
}  // namespace hone_recorded

#include "common/schedule/recorded/names.h"

#endif  // HONE_COMMON_SCHEDULE_RECORDED_PRELUDE_H_
