#include "tests/server/store/store_factories.h"

#include <cstdio>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#ifdef HONE_WITH_POSTGRES
#include "tests/server/store/postgres_server.h"
#endif

namespace hone::store {
namespace {

#ifdef HONE_WITH_POSTGRES
absl::StatusOr<std::unique_ptr<Store>> OpenInPostgres(const std::string& place) {
  HONE_ASSIGN_OR_RETURN(PostgresServer* const server, PostgresServer::Get());
  HONE_ASSIGN_OR_RETURN(const std::string uri, server->DatabaseOf(place));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenStore(uri));
  if (!LeadsSoon(*store)) return absl::UnavailableError("another store leads");
  return store;
}
#endif

}  // namespace

bool LeadsSoon(Store& store) {
  const absl::Time end = SteadyNow() + absl::Seconds(10);
  while (true) {
    const absl::StatusOr<bool> leads = store.Lead();
    if (!leads.ok() || *leads || SteadyNow() > end) return leads.value_or(false);
    absl::SleepFor(absl::Milliseconds(10));
  }
}

const std::vector<StoreFactory>& StoreFactories() {
  static const auto* const factories = [] {
    auto* all = new std::vector<StoreFactory>{
        {"sqlite", [](const std::string& place) { return OpenSqliteStore(place + "/hone.db"); }},
    };
#ifdef HONE_WITH_POSTGRES
    if (!PostgresPrograms().empty()) {
      all->push_back({"postgresql", OpenInPostgres});
    } else {
      std::fprintf(stderr, "NOT TESTED: the store on PostgreSQL; install postgresql-15\n");
    }
#else
    std::fprintf(stderr, "NOT TESTED: the store on PostgreSQL; install libpq-dev, build again\n");
#endif
    return all;
  }();
  return *factories;
}

}  // namespace hone::store
