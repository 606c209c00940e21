#ifndef HONE_WORKER_COMPILE_C_C_PRELUDE_H_
#define HONE_WORKER_COMPILE_C_C_PRELUDE_H_

#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "worker/compile/c/dialect.h"

namespace hone::codegen {

// The functions that the printed kernels call where C has no operator or defines it differently
// from ir/arithmetic.h: integers that wrap, NaN in a maximum, conversions. Only functions that are
// used are printed.
class CPrelude {
 public:
  explicit CPrelude(const CDialect& dialect) : dialect_(dialect) {}

  // Returns `name` or, with a type, "name_type", and adds that function.
  //   for int and long: add, sub, mul, neg, abs, div, shift_left, shift_right, floor_div, floor_mod
  //   for these and float and double: max, min
  //   for float and double: int_from, long_from, sigmoid, normal_cdf
  //   without a type: F_to_float, F_from_float and round_F for f16, bf16, f8e4m3 and f8e5m2;
  //   odd_from_long, odd_from_double
  //   INFINITY, NAN
  // Also any function, type or macro that only the dialect defines.
  std::string Use(absl::string_view name, absl::string_view type = "");
  // Adds the functions that the text calls. Returns the text.
  std::string UseAllIn(std::string text);

  void UseF64() { has_f64_ = true; }
  bool uses_f64() const { return has_f64_; }
  std::string Text() const;

 private:
  void UseWord(const std::string& word);

  const CDialect& dialect_;
  std::set<std::string> used_;
  std::string functions_;
  bool has_f64_ = false;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_PRELUDE_H_
