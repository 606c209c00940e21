#ifndef HONE_CLIENT_NETWORK_PLAN_PARTITION_OPTIONS_H_
#define HONE_CLIENT_NETWORK_PLAN_PARTITION_OPTIONS_H_

#include "client/network/graph/partition.h"
#include "common/target/target.h"

namespace hone::network {

// How networks are divided for a kind of device. The tasks of a network depend on it, so it must
// not depend on anything else.
graph::PartitionOptions PartitionOptionsFor(target::Kind kind);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_PARTITION_OPTIONS_H_
