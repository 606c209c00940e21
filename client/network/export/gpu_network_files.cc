#include "client/network/export/gpu_network_files.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "client/network/export/c_text.h"
#include "client/network/export/gpu_driver_text.h"
#include "client/network/export/gpu_network_text.h"
#include "client/network/export/network_header.h"
#include "nlohmann/json.hpp"

namespace hone::network {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;  // of the JSON file

const target::GpuLaunch& LaunchOf(const GpuNetworkFacts& facts, const GpuCommand& command) {
  return facts.kernels[command.kernel].module->launches[command.launch];
}
target::Kind KindOf(const GpuNetworkFacts& facts) { return facts.kernels[0].module->kind; }

Json CommandJson(const GpuNetworkFacts& facts, const GpuCommand& command) {
  if (command.kernel == GpuCommand::kCopy) {
    return {{"copy", {{"from", command.parts[0]}, {"to", command.parts[1]}}}};
  }
  const target::GpuLaunch& launch = LaunchOf(facts, command);
  Json parameters = Json::array();
  for (const int part : command.parts) {
    parameters.push_back(part == GpuCommand::kNull ? Json(nullptr) : Json(part));
  }
  return {{"module", command.kernel},
          {"kernel", launch.kernel},
          {"grid", launch.grid},
          {"block", launch.block},
          {"shared_bytes", launch.shared_bytes},
          {"parameters", std::move(parameters)}};
}

Json TensorsJson(const Plan& plan, const std::vector<int>& tensors, const std::vector<int>& parts) {
  Json list = Json::array();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PlanTensor& tensor = plan.tensors[tensors[i]];
    list.push_back({{"name", tensor.name},
                    {"dtype", std::string(ir::DTypeName(tensor.type.dtype))},
                    {"shape", tensor.type.shape},
                    {"part", parts[i]}});
  }
  return list;
}

// The commands of the packing and of all steps, in order.
std::vector<const GpuCommand*> AllCommands(const GpuPlan& plan) {
  std::vector<const GpuCommand*> commands;
  for (const GpuCommand& command : plan.packing) commands.push_back(&command);
  for (const std::vector<GpuCommand>& step : plan.steps) {
    for (const GpuCommand& command : step) commands.push_back(&command);
  }
  return commands;
}

// "static const TYPE NAME[] = {…};". C has no empty arrays, so an empty table has a zero.
std::string Table(absl::string_view type, absl::string_view name,
                  const std::vector<std::string>& rows) {
  const std::string content = absl::StrJoin(rows, ",\n    ");
  return absl::StrCat("static const ", type, " ", name, "[] = {\n    ",
                      content.empty() ? "0" : content, "};\n\n");
}

// "input0.bin output0.bin": an example of the host program's arguments.
std::string FileNames(const GpuPlan& plan) {
  std::string names;
  for (size_t i = 0; i < plan.inputs.size(); ++i) absl::StrAppend(&names, "input", i, ".bin ");
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    absl::StrAppend(&names, o == 0 ? "" : " ", "output", o, ".bin");
  }
  return names;
}

}  // namespace

std::string GpuNetworkJson(const GpuNetworkFacts& facts) {
  const GpuPlan& plan = *facts.gpu_plan;
  Json all = {{"version", kVersion},
              {"kind", std::string(target::KindName(KindOf(facts)))},
              {"target", facts.kernels[0].target.Key()},
              {"weights", facts.name + ".weights"},
              {"weights_bytes", facts.weights_bytes},
              {"weights_id", facts.weights.ToHex()},
              {"modules", facts.modules},
              {"inputs", TensorsJson(*facts.plan, facts.plan->inputs, plan.inputs)},
              {"outputs", TensorsJson(*facts.plan, facts.plan->outputs, plan.outputs)},
              {"buffers", Json::array()},
              {"parts", Json::array()},
              {"packing", Json::array()},
              {"steps", Json::array()}};
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    Json buffer = {{"bytes", plan.buffers[b].bytes}};
    if (facts.weights_at[b] >= 0) buffer["weights_at"] = facts.weights_at[b];
    if (plan.buffers[b].only_for_packing) buffer["only_for_packing"] = true;
    all["buffers"].push_back(std::move(buffer));
  }
  for (const GpuPart& part : plan.parts) {
    all["parts"].push_back(
        {{"buffer", part.buffer}, {"offset", part.offset}, {"bytes", part.bytes}});
  }
  for (const GpuCommand& command : plan.packing) {
    all["packing"].push_back(CommandJson(facts, command));
  }
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    Json commands = Json::array();
    for (const GpuCommand& command : plan.steps[s]) commands.push_back(CommandJson(facts, command));
    all["steps"].push_back(
        {{"name", facts.plan->steps[s].name}, {"commands", std::move(commands)}});
  }
  // Names in models can be any bytes, and JSON is UTF-8.
  return all.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

std::string GpuNetworkHeader(const GpuNetworkFacts& facts) {
  const GpuPlan& plan = *facts.gpu_plan;
  const std::string& name = facts.name;
  const std::string prefix = client::MacroPrefix(name);
  std::vector<std::string> buffers, parts, parameters, commands, modules;
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    buffers.push_back(absl::StrFormat("{INT64_C(%d), INT64_C(%d), %d}", plan.buffers[b].bytes,
                                      facts.weights_at[b],
                                      plan.buffers[b].only_for_packing ? 1 : 0));
  }
  for (const GpuPart& part : plan.parts) {
    parts.push_back(
        absl::StrFormat("{%d, INT64_C(%d), INT64_C(%d)}", part.buffer, part.offset, part.bytes));
  }
  size_t most = 1;
  for (const GpuCommand* const command : AllCommands(plan)) {
    const std::string list = absl::StrCat(parameters.size(), ", ", command->parts.size(), "}");
    most = std::max(most, command->parts.size());
    for (const int part : command->parts) parameters.push_back(absl::StrCat(part));
    if (command->kernel == GpuCommand::kCopy) {
      commands.push_back(absl::StrCat("{-1, \"copy\", {0, 0, 0}, {0, 0, 0}, 0, ", list));
      continue;
    }
    const target::GpuLaunch& launch = LaunchOf(facts, *command);
    commands.push_back(absl::StrFormat("{%d, \"%s\", {%s}, {%s}, %d, %s", command->kernel,
                                       launch.kernel, absl::StrJoin(launch.grid, ", "),
                                       absl::StrJoin(launch.block, ", "), launch.shared_bytes,
                                       list));
  }
  for (const std::string& module : facts.modules) {
    modules.push_back(absl::StrCat("\"", module, "\""));
  }
  const auto numbers = [](const std::vector<int>& list) {
    return std::vector<std::string>{absl::StrJoin(list, ", ")};
  };
  std::string text = absl::StrCat(
      "/* The network ", name, ", exported by Hone for ", facts.kernels[0].target.Key(), ".\n *\n",
      NetworkSignature(*facts.plan, " * "), " *\n * ", name,
      "_host.c is a program that runs it. Allocate all buffers, and fill those that have a\n"
      " * content. Run the first ",
      prefix,
      "_PACKING commands once, and for each run the others, in order, on one\n"
      " * queue. ",
      name, ".json has the same for other languages.\n */\n#ifndef HONE_GPU_NETWORK_", prefix,
      "_H\n#define HONE_GPU_NETWORK_", prefix, "_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n",
      kGpuNetworkTypes);
  const auto define = [&](absl::string_view what, int64_t value) {
    absl::StrAppend(&text, "#define ", prefix, "_", what, " ", value, "\n");
  };
  define("INPUTS", static_cast<int64_t>(plan.inputs.size()));
  define("OUTPUTS", static_cast<int64_t>(plan.outputs.size()));
  define("WEIGHTS_BYTES", facts.weights_bytes);
  define("MODULES", static_cast<int64_t>(modules.size()));
  define("BUFFERS", static_cast<int64_t>(buffers.size()));
  define("PARTS", static_cast<int64_t>(parts.size()));
  define("PACKING", static_cast<int64_t>(plan.packing.size()));
  define("COMMANDS", static_cast<int64_t>(commands.size()));
  define("MOST_PARAMETERS", static_cast<int64_t>(most));
  absl::StrAppend(&text, "\n", Table("char* const", name + "_modules", modules),
                  Table("HoneGpuBuffer", name + "_buffers", buffers),
                  Table("HoneGpuPart", name + "_parts", parts),
                  Table("int", name + "_parameters", {absl::StrJoin(parameters, ", ")}),
                  Table("HoneGpuCommand", name + "_commands", commands), "/* Parts. */\n",
                  Table("int", name + "_inputs", numbers(plan.inputs)),
                  Table("int", name + "_outputs", numbers(plan.outputs)), "#endif\n");
  return text;
}

std::string GpuNetworkHostProgram(const GpuNetworkFacts& facts) {
  const auto* const id = reinterpret_cast<const unsigned char*>(&facts.weights);
  const std::string text = absl::StrCat(
      kGpuNetworkAbout, client::GpuDriverText(KindOf(facts), facts.name, /*parts=*/true),
      kGpuNetworkHost);
  return absl::StrReplaceAll(
      text, {{"#include <time.h>\n", "#include <string.h>\n#include <time.h>\n"},
             {"@DEVICE@", KindOf(facts) == target::Kind::kCuda ? "GPU" : "OpenCL device"},
             {"@NAME@", facts.name},
             {"@PREFIX@", client::MacroPrefix(facts.name)},
             {"@FILES@", FileNames(*facts.gpu_plan)},
             {"@ID@", absl::StrJoin(absl::MakeConstSpan(id, sizeof facts.weights), ", ",
                                    [](std::string* out, unsigned char byte) {
                                      absl::StrAppend(out, static_cast<int>(byte));
                                    })}});
}

}  // namespace hone::network
