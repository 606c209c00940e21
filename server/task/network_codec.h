#ifndef HONE_SERVER_TASK_NETWORK_CODEC_H_
#define HONE_SERVER_TASK_NETWORK_CODEC_H_

#include "server/task/network_types.h"

namespace hone::v1 {
class StoredJobState;
class StoredNetwork;
}  // namespace hone::v1

namespace hone::task {

// Convert the request and the state of a job of networks to and from their stored forms. job_codec
// calls them.
void WriteNetwork(const NetworkSpec& spec, v1::StoredNetwork& message);
NetworkSpec ReadNetwork(const v1::StoredNetwork& message);
void WriteNetworkState(const NetworkState& state, v1::StoredJobState& message);
NetworkState ReadNetworkState(const v1::StoredJobState& message);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_NETWORK_CODEC_H_
