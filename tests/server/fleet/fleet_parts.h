#ifndef HONE_TESTS_SERVER_FLEET_FLEET_PARTS_H_
#define HONE_TESTS_SERVER_FLEET_FLEET_PARTS_H_

#include <utility>

#include "gtest/gtest.h"
#include "server/fleet/fleet_parts.h"
#include "tests/fakes/fake_clock.h"

namespace hone::fleet {

// The parts of a fleet that answer the calls of its workers, without the fleet that composes them.
class FleetPartsTest : public ::testing::Test {
 protected:
  explicit FleetPartsTest(FleetOptions options) : options_(std::move(options)) {}

  const FleetOptions options_;
  FakeClock clock_;
  ArtifactCache artifacts_;
  Standings standings_;
  WorkerRegistry registry_{&standings_};
  LeaseBook book_{&options_};
  DeferredCalls deferred_;
  const FleetParts parts_{clock_, options_, artifacts_, standings_, registry_, book_, deferred_};
  WorkerCalls calls_{parts_};
};

}  // namespace hone::fleet

#endif  // HONE_TESTS_SERVER_FLEET_FLEET_PARTS_H_
