#ifndef HONE_SERVER_LAB_RELATED_SET_H_
#define HONE_SERVER_LAB_RELATED_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/lab/run.h"
#include "server/search/search_strategy.h"
#include "server/task/task_environment.h"
#include "server/task/transfer.h"

namespace hone::lab {

// Number of results of another workload that a run may use; as many as AutoTVM requires for a
// global model.
inline constexpr size_t kRelatedResults = 500;

// Returns `count` randomly drawn results, or all if there are no more.
std::vector<search::Measured> DrawResults(std::vector<search::Measured> results, size_t count,
                                          uint64_t seed);

// Returns what a task with these spaces would transfer from a store with kRelatedResults randomly
// drawn results of another recorded set (task::TransferFrom).
task::Transfer TransferFromSet(const Bench& related, const task::TaskSpaces& spaces, uint64_t seed);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_RELATED_SET_H_
