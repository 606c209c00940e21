#ifndef HONE_TESTS_FAKES_CUDA_LIBRARIES_FAULTS_H_
#define HONE_TESTS_FAKES_CUDA_LIBRARIES_FAULTS_H_

#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace hone::fakes {

// The settings in the environment variable HONE_FAKE_CUDA, separated by commas. It is read when a
// library is loaded.
//
//   no_device       the driver finds no GPU
//   driver=11040    the CUDA version of the driver
//   init=803        the driver does not start, with this error
//   sm=35           the compute capability
//   name=TEXT       of the devices
//   devices=2       their number
//   units=4         multiprocessors of each
//   memory=BYTES    of each
//   prohibited      the compute mode allows no programs
//   fail=700        the first launch of a kernel fails with this error, and everything after it
//   no_graphs       the driver records no graphs
//   hang            a launched kernel never ends
//   throttled, ecc=3, mig   what NVML tells
class Faults {
 public:
  Faults() {
    const char* const words = std::getenv("HONE_FAKE_CUDA");
    if (words != nullptr) words_ = absl::StrSplit(words, ',', absl::SkipEmpty());
  }
  bool Has(absl::string_view word) const {
    for (const std::string& one : words_) {
      if (one == word) return true;
    }
    return false;
  }
  std::string Text(absl::string_view word, absl::string_view otherwise) const {
    for (absl::string_view one : words_) {
      if (absl::ConsumePrefix(&one, word) && absl::ConsumePrefix(&one, "="))
        return std::string(one);
    }
    return std::string(otherwise);
  }
  int64_t Number(absl::string_view word, int64_t otherwise) const {
    int64_t number = otherwise;
    return absl::SimpleAtoi(Text(word, ""), &number) ? number : otherwise;
  }

 private:
  std::vector<std::string> words_;
};

}  // namespace hone::fakes

#endif  // HONE_TESTS_FAKES_CUDA_LIBRARIES_FAULTS_H_
