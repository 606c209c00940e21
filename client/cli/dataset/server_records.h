#ifndef HONE_CLIENT_CLI_DATASET_SERVER_RECORDS_H_
#define HONE_CLIENT_CLI_DATASET_SERVER_RECORDS_H_

#include "absl/status/status.h"
#include "client/cli/dataset/dataset_build.h"
#include "client/cli/dataset/dataset_builder.h"
#include "client/cli/session.h"

namespace hone::cli {

// Adds the records of the session's server, with the strategies and networks of its jobs. Errors
// also as for Connection::ExportRecords, ListJobs and GetJob.
absl::Status AddServer(Session& session, const v1::ListRecordsRequest& filter,
                       DatasetBuilder& builder, BuildReport& report);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_SERVER_RECORDS_H_
