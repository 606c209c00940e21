#ifndef HONE_CLIENT_CLI_NETWORK_OUTPUT_H_
#define HONE_CLIENT_CLI_NETWORK_OUTPUT_H_

#include <string>

#include "client/cli/json_output.h"
#include "client/cli/table.h"
#include "client/lib/api.h"

// How jobs of networks are shown.
namespace hone::cli {

// Whether the latencies of all tasks are confirmed.
bool AllConfirmed(const client::NetworkProgress& network);

// What a job tunes: "network resnet50, 23 tasks", or the workload as ir::SignatureOfText writes it.
std::string DescribeJob(const client::Job& job);
// A table with a row for each task. Tasks with a larger share of the latency come first.
Table TaskTable(const client::NetworkProgress& network);
// The sum of the tasks' latencies, "2.000 ms"; "~2.000 ms" while a task has only screened
// latencies, which are too low, so that the sum may rise when they are confirmed.
std::string SumText(const client::NetworkProgress& network);
Json ToJson(const client::NetworkProgress& network);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_OUTPUT_H_
