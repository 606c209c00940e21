#ifndef HONE_CLIENT_CLI_RECORDS_H_
#define HONE_CLIENT_CLI_RECORDS_H_

#include "client/cli/command.h"

// The commands below `hone records` that are not about looking.
namespace hone::cli {

// export, import.
void AddRecordFiles(CLI::App& records, Globals& globals, Action& action);
// backup, compact.
void AddRecordStore(CLI::App& records, Globals& globals, Action& action);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RECORDS_H_
