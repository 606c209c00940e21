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

// Results of another workload that a run may know: as many as AutoTVM asks of a global model.
inline constexpr size_t kRelatedResults = 500;

// `count` of the results, drawn at random by the seed; all where there are no more.
std::vector<search::Measured> DrawResults(std::vector<search::Measured> results, size_t count,
                                          uint64_t seed);

// What a task with these spaces would take over from a store that has kRelatedResults results of
// another recorded set, drawn by the seed (task::TransferFrom).
task::Transfer TransferFromSet(const Bench& related, const task::TaskSpaces& spaces, uint64_t seed);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_RELATED_SET_H_
