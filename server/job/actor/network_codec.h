#ifndef HONE_SERVER_JOB_ACTOR_NETWORK_CODEC_H_
#define HONE_SERVER_JOB_ACTOR_NETWORK_CODEC_H_

#include "server/job/actor/network_types.h"

namespace hone::v1 {
class StoredJobState;
class StoredNetwork;
}  // namespace hone::v1

namespace hone::job {

// Convert the request and the state of a job of networks to and from their stored forms. job_codec
// calls them.
void WriteNetwork(const NetworkSpec& spec, v1::StoredNetwork& message);
NetworkSpec ReadNetwork(const v1::StoredNetwork& message);
void WriteNetworkState(const NetworkState& state, v1::StoredJobState& message);
NetworkState ReadNetworkState(const v1::StoredJobState& message);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_NETWORK_CODEC_H_
