#ifndef HONE_CLIENT_CLI_OUTPUT_NETWORK_OUTPUT_H_
#define HONE_CLIENT_CLI_OUTPUT_NETWORK_OUTPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/connection/api.h"

// The text, the table and the JSON that describe jobs, in particular those of networks.
namespace hone::cli {

// Whether all tasks have a published best, even if other work disturbed its measurement.
bool AllConfirmed(const v1::NetworkProgress& network);
// How many tasks have no published best: "2 of 5 tasks have no confirmed kernel".
std::string WithoutKernelText(const v1::NetworkProgress& network);
// For a job that is done. If some tasks of its network have no published best because the job had
// too little time or too few trials for them, tells the user on standard error how many, and that
// `command` tunes them: the network runs nevertheless, with the best measured schedules and those
// of the draft. Aborted, with the same text: a task failed for another reason.
absl::Status CheckTasks(const v1::Job& job, absl::string_view command);

// What a job tunes: "network resnet50, 23 tasks", or the workload as ir::SignatureOfText writes it.
std::string DescribeJob(const v1::Job& job);
// The same, and what else than a search the job is, such as a revalidation, the check of one
// schedule or the job of hone run: "check of matmul(…)".
std::string DescribeJobAndKind(const v1::Job& job);
// A table with a row for each task. Tasks with a larger share of the latency come first. `ended`:
// whether the job has ended, so that the tasks that have not started do not wait any more.
Table TaskTable(const v1::NetworkProgress& network, bool ended);
// A sentence without a period for each error of tasks: "tasks 7.2, 7.5 failed: …".
std::vector<std::string> TaskErrors(const v1::NetworkProgress& network);
// The note of a job, without the error of a task, which TaskErrors explains.
std::string NoteBesideErrors(const v1::Job& job);
// Prints the table and the errors.
void PrintTasks(const v1::NetworkProgress& network, bool ended);
// The sum of the tasks' latencies, such as "2.000 ms", or "~2.000 ms" unless it is known that the
// latencies of all tasks are confirmed. One that comes from the search is the lowest of many
// measurements and therefore too low: the sum may rise when it is confirmed.
std::string SumText(const v1::NetworkProgress& network);
Json ToJson(const v1::NetworkProgress& network);

// Says that other work disturbed every process that measured the bests of some tasks, whose number
// is positive.
std::string DisturbedTasksText(int64_t disturbed);
// Says how many bests of a network's tasks were measured in fewer processes than usual; "" if none
// was. nullopt stands for a task without a best.
std::string LessCertainText(absl::Span<const std::optional<v1::Best>> bests);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_OUTPUT_NETWORK_OUTPUT_H_
