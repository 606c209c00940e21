#ifndef HONE_CLIENT_CLI_WORKER_TEXT_H_
#define HONE_CLIENT_CLI_WORKER_TEXT_H_

#include <string>

#include "client/lib/api.h"

namespace hone::cli {

// Returns the state of a worker for the list, such as "connected". Only a worker that an
// administrator has drained is called drained; one that was stopped is "stopped".
std::string WorkerState(const client::Worker& worker);

// Returns what "hone workers resume" has changed: whether the worker gets work again, or first has
// to connect.
std::string ResumedText(const client::Worker& worker);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_WORKER_TEXT_H_
