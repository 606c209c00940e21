#ifndef HONE_SERVER_STORE_POSTGRES_COMMANDS_H_
#define HONE_SERVER_STORE_POSTGRES_COMMANDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/postgres/connection.h"
#include "server/store/store.h"

// The most frequent writes as one statement each, for the writer's pipeline. The functions of
// tables.h would need a round trip for every step.
namespace hone::store::postgres {

PostgresCommand InsertRecord(const record::Record& record, const JobStep& step);
// Reads the id of the record from the result of InsertRecord. FailedPrecondition: the event is not
// stored.
absl::StatusOr<int64_t> InsertedRecord(const JobStep& step, PostgresRows& rows);

PostgresCommand InsertEvent(const JobEvent& event);
// Reads the status of the write from the result of the event's statement; see Store::AppendEvent.
absl::Status CheckEventInserted(const JobEvent& event, PostgresRows& rows);

}  // namespace hone::store::postgres

#endif  // HONE_SERVER_STORE_POSTGRES_COMMANDS_H_
