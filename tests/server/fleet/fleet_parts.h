#ifndef HONE_TESTS_SERVER_FLEET_FLEET_PARTS_H_
#define HONE_TESTS_SERVER_FLEET_FLEET_PARTS_H_

#include <utility>

#include "gtest/gtest.h"
#include "server/fleet/worker_list.h"
#include "tests/fakes/fake_clock.h"

namespace hone::fleet {

// The parts of a fleet that the list of its workers needs, without the fleet that composes them.
class FleetPartsTest : public ::testing::Test {
 protected:
  explicit FleetPartsTest(FleetOptions options) : options_(std::move(options)) {}

  const FleetOptions options_;
  FakeClock clock_;
  ArtifactCache artifacts_;
  Standings standings_;
  WorkerRegistry registry_{&standings_};
  LeaseBook book_{&options_};
  Dispatcher dispatcher_{&options_, &artifacts_, &standings_, &registry_, &book_};
  DeferredCalls deferred_;
  WorkerCalls calls_{{.clock = &clock_,
                      .options = &options_,
                      .standings = &standings_,
                      .registry = &registry_,
                      .book = &book_,
                      .dispatcher = &dispatcher_,
                      .deferred = &deferred_}};
  const WorkerList list_{{.clock = &clock_,
                          .options = &options_,
                          .standings = &standings_,
                          .registry = &registry_,
                          .book = &book_,
                          .calls = &calls_}};
};

}  // namespace hone::fleet

#endif  // HONE_TESTS_SERVER_FLEET_FLEET_PARTS_H_
