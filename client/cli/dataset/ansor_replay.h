#ifndef HONE_CLIENT_CLI_DATASET_ANSOR_REPLAY_H_
#define HONE_CLIENT_CLI_DATASET_ANSOR_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/dataset/foreign_workload.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// How Ansor stored the constants whose layout is free when it measured (its layout_rewrite_option).
inline constexpr int64_t kLayoutAsGiven = 0, kLayoutOfLoops = 2;

inline constexpr size_t kMostLoops = 64;  // of a stage

// Turns the steps of an Ansor record into a trace file with the same loop nest. REQUIRES: a known
// workload; the steps have the forms of ansor_log.cc, and lists of at most kMostLoops numbers.
//
// Ansor splits a stage and then moves it to a loop of another one, where TVM shrinks its loops to
// the part that is needed. compute_at makes loops over that part, so the steps of a stage that is
// moved wait until then. Kinds of loops are set last. `auto_unroll_max_step` becomes the `unroll`
// of exactly the loops that TVM's pass UnrollLoop would unroll.
//
// InvalidArgument: a step names a stage, loop or step that does not exist, or its factors do not
// divide. FailedPrecondition: a step has no exact counterpart; the message is "step NAME: why", and
// the part before the colon is the reason that is counted.
absl::StatusOr<std::string> ReplayAnsor(const ForeignWorkload& workload,
                                        const nlohmann::json& steps, int64_t layout);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_ANSOR_REPLAY_H_
