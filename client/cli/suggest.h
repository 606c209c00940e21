#ifndef HONE_CLIENT_CLI_SUGGEST_H_
#define HONE_CLIENT_CLI_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/command_line.h"

namespace hone::cli {

// What is wrong with a command line that the parser refused, for a person: an unknown command or
// option with the nearest known one, else `parser_says`. `arguments`: without the program's name.
std::string ExplainCommandLine(const Command& app, const std::vector<std::string>& arguments,
                               absl::string_view parser_says);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_SUGGEST_H_
