#ifndef HONE_CLIENT_CLI_TUNE_STORED_MODEL_H_
#define HONE_CLIENT_CLI_TUNE_STORED_MODEL_H_

#include <vector>

#include "client/cli/command.h"
#include "client/cli/output/table.h"
#include "hone/v1/tuning.pb.h"

namespace hone::cli {

// Trained models of a store, one per row.
Table StoredTable(const std::vector<v1::StoredModel>& models);

// Adds to `hone models` the commands about one stored model: show, export and import.
void AddStoredModels(Command& models, Globals& globals);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TUNE_STORED_MODEL_H_
