#include "client/cli/command.h"

#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hone::cli {

void AddWorkloadWords(CLI::App& command, std::vector<std::string>& words, bool required) {
  CLI::Option* option =
      command.add_option("workload", words,
                         "OP key=value..., as in \"matmul m=512 n=512 k=512\", or a FILE.hone; "
                         "hone operators lists the operators");
  if (required) option->required();
}

CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](std::string& value) {
        return std::string(
            value.empty() ? "the value is empty; leave the option out, or give it one" : "");
      },
      "");
}

CLI::Validator IsSeed() {
  return CLI::Validator(
      [](std::string& value) {
        uint64_t seed = 0;
        if (absl::SimpleAtoi(value, &seed)) return std::string();
        return absl::StrCat(value, " is no whole number from 0 to ",
                            std::numeric_limits<uint64_t>::max());
      },
      "");
}

std::string TuneFirstHint(const std::string& title) {
  return absl::StrCat("; find one with: hone tune ", title);
}

}  // namespace hone::cli
