#ifndef HONE_CLIENT_CLI_RECORDS_POLICY_TEXT_H_
#define HONE_CLIENT_CLI_RECORDS_POLICY_TEXT_H_

#include <string>

#include "common/record/record.h"

namespace hone::cli {

// What a measurement was made for, and how if that is unusual: "search", "confirmation", "search,
// flushed caches, 2 threads".
std::string PolicyText(const record::Policy& policy);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RECORDS_POLICY_TEXT_H_
