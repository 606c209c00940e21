#ifndef HONE_TESTS_SERVER_STORE_STORE_FACTORIES_H_
#define HONE_TESTS_SERVER_STORE_STORE_FACTORIES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/store.h"

namespace hone::store {

// Opens one implementation of Store for the conformance tests. `place` names an empty folder that
// belongs to the test; opening the same place again must find everything that was committed there.
struct StoreFactory {
  std::string name;
  absl::StatusOr<std::unique_ptr<Store>> (*open)(const std::string& place);
};

// All implementations. To add one, add a line to the table.
const std::vector<StoreFactory>& StoreFactories();

// Tries for some seconds to become the leader: the database ends a session, which releases the
// lock, soon after its connection was closed.
bool LeadsSoon(Store& store);

}  // namespace hone::store

#endif  // HONE_TESTS_SERVER_STORE_STORE_FACTORIES_H_
