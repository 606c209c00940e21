#include "client/cli/fleet/machine_constants.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace hone::cli {
namespace {

// How far a measured constant is from that of the kind of CPU: "12x the usual 2 cycles".
std::string Distance(const v1::MachineConstant& constant) {
  return absl::StrFormat("%.2gx the usual %.3g cycles",
                         constant.cycles() / constant.preset_cycles(), constant.preset_cycles());
}

std::string SourceOf(const v1::MachineConstant& constant) {
  if (!constant.measured()) return "preset";
  return constant.unusual() ? absl::StrCat("measured, ", Distance(constant)) : "measured";
}

// "launch 5200 ns"
std::string NameAndTime(absl::string_view name, double ns) {
  if (ns >= 1e3) return absl::StrFormat("%s %.0f ns", name, ns);
  return absl::StrFormat("%s %.3g ns", name, ns);
}

}  // namespace

bool IsMeasured(const MachineConstants& constants) {
  return std::ranges::any_of(constants, &v1::MachineConstant::measured);
}

Table ConstantsTable(const MachineConstants& constants) {
  Table table({Left("constant"), Right("ns"), Right("cycles"), Left("source"), Left("meaning")});
  for (const v1::MachineConstant& constant : constants) {
    table.AddRow({constant.name(), constant.ns() > 0 ? absl::StrFormat("%.3g", constant.ns()) : "-",
                  absl::StrFormat("%.3g", constant.cycles()), SourceOf(constant),
                  constant.meaning()});
  }
  return table;
}

Json ConstantsJson(const MachineConstants& constants) {
  Json list = Json::array();
  for (const v1::MachineConstant& constant : constants) {
    Json& json = list.emplace_back(
        FieldsJson(constant, {{"name", "constant"}, "ns", "cycles", "preset_cycles", "unusual"}));
    json["source"] = constant.measured() ? "measured" : "preset";
  }
  return list;
}

std::vector<HealthCheck> CheckConstants(const std::vector<v1::WorkerInfo>& workers) {
  std::vector<HealthCheck> checks;
  for (const v1::WorkerInfo& worker : workers) {
    if (!worker.connected() || !worker.can_run()) continue;
    HealthCheck& check = checks.emplace_back(HealthCheck{"calibration"});
    std::vector<std::string> measured, unusual;
    for (const v1::MachineConstant& constant : worker.constants()) {
      if (!constant.measured()) continue;
      measured.push_back(NameAndTime(constant.name(), constant.ns()));
      if (constant.unusual())
        unusual.push_back(absl::StrCat(constant.name(), " is ", Distance(constant)));
    }
    if (worker.constants().empty()) {  // those of a GPU have no presets
      const Json calibration = CalibrationJson(worker.calibration());
      for (const auto& [name, ns] : calibration.items())
        measured.push_back(NameAndTime(name, ns.get<double>()));
    }
    const std::string of = absl::StrCat(worker.id(), " (", worker.target(), "): ");
    if (measured.empty()) {
      check.finding = absl::StrCat(
          of, "none measured",
          worker.constants().empty() ? "" : "; the constants are those of the kind of CPU");
      continue;
    }
    check.finding = absl::StrCat(of, absl::StrJoin(measured, ", "));
    if (unusual.empty()) continue;
    check.state = HealthCheck::State::kWarning;
    check.advice = absl::StrCat("unlike this kind of CPU: ", absl::StrJoin(unusual, ", "),
                                "; if other work disturbed the measurement, start hone-worker "
                                "again while the machine is idle");
  }
  return checks;
}

}  // namespace hone::cli
