#ifndef HONE_CLIENT_CLI_FLEET_WORKER_TEXT_H_
#define HONE_CLIENT_CLI_FLEET_WORKER_TEXT_H_

#include <string>
#include <vector>

#include "client/connection/api.h"

namespace hone::cli {

// Returns the state of a worker for the list, such as "connected". Only a worker that an
// administrator has drained is called drained, or draining while it finishes its leases; one that
// was stopped is "stopped".
std::string WorkerState(const v1::WorkerInfo& worker);

// Returns what "hone workers resume" has changed: whether the worker gets work again, or first has
// to connect.
std::string ResumedText(const v1::WorkerInfo& worker);

// Returns for which targets of the workers, or for which builds, no worker takes work, so that
// their jobs wait, with the state of each worker that could, and what helps. "" if there are none.
std::string WhyJobsWait(const std::vector<v1::WorkerInfo>& workers);

// Returns which unfinished jobs wait because a worker was drained and no other one does its work,
// and how to resume it; "" if there are none. `drained`: its name.
std::string WaitWithout(const std::string& drained, const std::vector<v1::WorkerInfo>& workers,
                        const std::vector<v1::Job>& jobs);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_FLEET_WORKER_TEXT_H_
