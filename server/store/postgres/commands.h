#ifndef HONE_SERVER_STORE_POSTGRES_COMMANDS_H_
#define HONE_SERVER_STORE_POSTGRES_COMMANDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/postgres/connection.h"
#include "server/store/store.h"

// The writes of the hot path as one statement each, for the writer's pipeline. The tables' own code
// (record_table.h, job_table.h) would need a round trip for every step.
namespace hone::store::postgres {

PostgresCommand InsertRecord(const record::Record& record, const JobFence& fence);
// The id, of the row that InsertRecord gives. Aborted: fenced off. FailedPrecondition: the event
// is not stored.
absl::StatusOr<int64_t> InsertedRecord(const JobFence& fence, PostgresRows& rows);

PostgresCommand InsertEvent(const JobEvent& event);
// What the event's row says. NotFound, Aborted, AlreadyExists, FailedPrecondition: see AppendEvent.
absl::Status CheckEventInserted(const JobEvent& event, PostgresRows& rows);

// Retention in whole tables at a time, which other users of the database do not notice.
absl::StatusOr<CompactReport> Compact(PostgresConnection& connection,
                                      const CompactOptions& options);

}  // namespace hone::store::postgres

#endif  // HONE_SERVER_STORE_POSTGRES_COMMANDS_H_
