#ifndef HONE_CLIENT_CLI_SUGGEST_H_
#define HONE_CLIENT_CLI_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/command_line.h"

namespace hone::cli {

// Explains why the parser refused a command line: names an unknown command or option and the
// nearest known one, or returns `parser_says`. `arguments` do not include the program's name.
std::string ExplainCommandLine(const Command& app, const std::vector<std::string>& arguments,
                               absl::string_view parser_says);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_SUGGEST_H_
