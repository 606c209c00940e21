#ifndef HONE_CLIENT_CLI_TUNE_JOB_REMARK_H_
#define HONE_CLIENT_CLI_TUNE_JOB_REMARK_H_

#include <string>

#include "absl/strings/string_view.h"
#include "client/connection/api.h"

namespace hone::cli {

// What a job tunes, and when and for how long: "matmul … on TARGET; created TIME, took 0:18". Names
// its owner if there is one, and its priority if that is not normal.
std::string JobFacts(const v1::Job& job);

// Where the best of a job comes from, if another job found it: "of job 12, 3 hours ago"; else "".
std::string OriginOfBest(const v1::Job& job);

// Why the best of a job's own candidates is not the best, although it seems faster; else "".
absl::string_view WhyOwnIsNotBest(const v1::Job& job);

// What has become of the best of a job; "" if it still counts.
absl::string_view Withdrawal(const v1::Job& job);

// What a job that has not ended does or waits for.
std::string PhaseOf(const v1::Job& job);

// What a user must know about a job in addition to its numbers.
std::string RemarkOn(const v1::Job& job);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TUNE_JOB_REMARK_H_
