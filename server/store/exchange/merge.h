#ifndef HONE_SERVER_STORE_EXCHANGE_MERGE_H_
#define HONE_SERVER_STORE_EXCHANGE_MERGE_H_

#include "absl/status/statusor.h"
#include "server/store/store.h"

namespace hone::store {

// Brings into one store what another has and it has not: records with their texts, and the
// published bests with their artifacts where they are faster. Either may be of any kind, so that
// this also moves a store from one kind to another. Goes by pages, each one transaction; broken
// off, it may be run again. Jobs and models stay where they are: they can be made again. Errors as
// of Store::Import and Store::Query.
absl::StatusOr<ImportReport> MergeStores(Store& into, Store& from);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_EXCHANGE_MERGE_H_
