#ifndef HONE_CLIENT_CLI_FLEET_MACHINE_CONSTANTS_H_
#define HONE_CLIENT_CLI_FLEET_MACHINE_CONSTANTS_H_

#include <type_traits>
#include <utility>
#include <vector>

#include "client/cli/fleet/health_check.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "hone/v1/tuning.pb.h"

namespace hone::cli {

using MachineConstants =
    std::remove_cvref_t<decltype(std::declval<const v1::WorkerInfo&>().constants())>;

// Whether a machine has measured at least one of its constants.
bool IsMeasured(const MachineConstants& constants);

// A row for each constant of the estimate of a schedule's time: its value in nanoseconds and
// cycles, and whether it was measured or is that of the kind of CPU.
Table ConstantsTable(const MachineConstants& constants);
Json ConstantsJson(const MachineConstants& constants);

// A check for each connected worker that runs kernels: what it has measured about its CPU or GPU. A
// warning if a constant is unlike its kind of CPU.
std::vector<HealthCheck> CheckConstants(const std::vector<v1::WorkerInfo>& workers);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_FLEET_MACHINE_CONSTANTS_H_
