#ifndef HONE_TESTS_SERVER_STORE_STORE_FACTORIES_H_
#define HONE_TESTS_SERVER_STORE_STORE_FACTORIES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/store.h"

namespace hone::store {

// How the conformance suite opens one implementation of Store. `place` names an empty folder of the
// test's own; opening the same place again must find what was committed there.
struct StoreFactory {
  std::string name;
  absl::StatusOr<std::unique_ptr<Store>> (*open)(const std::string& place);
};

// Every implementation. A new one is one line in the table.
const std::vector<StoreFactory>& StoreFactories();

}  // namespace hone::store

#endif  // HONE_TESTS_SERVER_STORE_STORE_FACTORIES_H_
