#include "tests/server/store/store_factories.h"

namespace hone::store {

const std::vector<StoreFactory>& StoreFactories() {
  static const auto* const factories = new std::vector<StoreFactory>{
      {"sqlite", [](const std::string& place) { return OpenSqliteStore(place + "/hone.db"); }},
  };
  return *factories;
}

}  // namespace hone::store
