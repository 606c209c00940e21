#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"

namespace hone::cli {
namespace {

using schedule::Argument;
using schedule::Primitive;

std::string CountText(const Argument& argument) {
  return argument.count == Argument::Count::kOptional ? ", optional"
         : argument.count == Argument::Count::kMany   ? ", any number of them"
                                                      : "";
}

std::string ArgumentsText(const Primitive& primitive) {
  if (primitive.arguments.empty()) return "";
  Table table({Left("  argument"), Left("kind"), Text("meaning")});
  for (const Argument& argument : primitive.arguments) {
    table.AddRow({absl::StrCat("  ", argument.name),
                  absl::StrCat(schedule::KindText(argument.kind), CountText(argument)),
                  std::string(argument.meaning)});
  }
  return absl::StrCat("\n", table.ToText(TerminalColumns(STDOUT_FILENO)));
}

Json PrimitiveJson(const Primitive& primitive) {
  Json arguments = Json::array();
  for (const Argument& argument : primitive.arguments) {
    arguments.push_back({{"name", std::string(argument.name)},
                         {"kind", std::string(schedule::KindText(argument.kind))},
                         {"named", argument.IsNamed()},
                         {"optional", argument.count != Argument::Count::kOne},
                         {"repeats", argument.count == Argument::Count::kMany},
                         {"meaning", std::string(argument.meaning)}});
  }
  return {{"name", std::string(primitive.name)},
          {"usage", primitive.Usage()},
          {"meaning", std::string(primitive.meaning)},
          {"samples", primitive.samples},
          {"version", primitive.version},
          {"arguments", std::move(arguments)}};
}

absl::Status ListPrimitives(const Globals& globals, const std::string& name) {
  std::vector<const Primitive*> shown;
  for (const Primitive& primitive : schedule::Primitives()) {
    if (name.empty() || primitive.name == name) shown.push_back(&primitive);
  }
  if (shown.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown primitive '", name, "'", schedule::KnownPrimitives(name)));
  }
  if (globals.json) {
    Json list = Json::array();
    for (const Primitive* primitive : shown) list.push_back(PrimitiveJson(*primitive));
    return PrintJson({{"primitives", std::move(list)}});
  }
  std::string text;
  for (const Primitive* primitive : shown) {
    absl::StrAppend(&text, primitive->Usage(), "\n  ", primitive->meaning, "\n");
    if (!name.empty()) text += ArgumentsText(*primitive);
  }
  if (name.empty()) {
    text +=
        "\nArguments in brackets are optional. A number is a literal or a register that a sampling "
        "primitive returned.\nhone primitives NAME explains the arguments of one primitive.\n";
  }
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddPrimitives(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("primitives", "List the primitives of schedules with their arguments");
  auto name = std::make_shared<std::string>();
  command.Add("primitive", *name, "The primitive whose arguments to explain (default: all)");
  CompleteWithoutTarget(command, globals,
                        "Traces are made of these primitives; hone schedule applies a trace.\n\n"
                        "Examples:\n"
                        "  hone primitives\n"
                        "  hone primitives cache_read\n"
                        "  hone primitives --json | jq -r '.primitives[].usage'",
                        [&globals, name] { return ListPrimitives(globals, *name); });
}

}  // namespace hone::cli
