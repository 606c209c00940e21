#ifndef HONE_SERVER_STORE_EXCHANGE_MERGE_H_
#define HONE_SERVER_STORE_EXCHANGE_MERGE_H_

#include "absl/status/statusor.h"
#include "server/store/store.h"

namespace hone::store {

// Copies the rows that `into` does not have yet from `from`: records with their texts, and
// published bests with their artifacts if they are faster. The stores may be of different kinds, so
// this also moves a store from one kind to another. Each page is one transaction; an interrupted
// merge can be run again. Jobs and models are not copied, because they can be made again. Errors
// are those of Store::Import and Store::Query.
absl::StatusOr<ImportReport> MergeStores(Store& into, Store& from);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_EXCHANGE_MERGE_H_
