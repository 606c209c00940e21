#ifndef HONE_TESTS_BENCH_LOAD_SPREAD_H_
#define HONE_TESTS_BENCH_LOAD_SPREAD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hone::load {

// A histogram of durations, with classes 5 % wide from a microsecond to hours. Thread-safe.
class Spread {
 public:
  Spread() = default;
  Spread(const Spread& other) { Add(other); }
  Spread& operator=(const Spread&) = delete;

  void Add(absl::Duration duration);
  void Add(const Spread& other);

  int64_t count() const;
  // Returns the q-quantile in milliseconds; 0 if there are no durations.
  double QuantileMs(double q) const;

  // "class:count …", for another process. InvalidArgument: malformed text.
  std::string Encode() const;
  static absl::StatusOr<Spread> Decode(absl::string_view text);

 private:
  static constexpr int kClasses = 480;
  std::array<std::atomic<int64_t>, kClasses> counts_ = {};
};

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_SPREAD_H_
