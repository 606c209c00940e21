#ifndef HONE_CLIENT_CONNECTION_ARTIFACT_STREAM_H_
#define HONE_CLIENT_CONNECTION_ARTIFACT_STREAM_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"
#include "hone/v1/tuning.pb.h"

namespace hone::client {

// Appends the chunks of a stream to `bytes`, and sets `digest` to that of the first chunk. `what`
// names the artifact in messages. DataLoss: it has more than 1 GiB.
absl::Status ReceiveArtifact(grpc::ClientContext& context,
                             grpc::ClientReader<v1::ArtifactChunk>& reader, const std::string& what,
                             std::string& bytes, std::string& digest);

// Sends the bytes in chunks, and returns the answer of the server.
absl::Status SendArtifact(grpc::ClientWriter<v1::ArtifactChunk>& writer, const std::string& digest,
                          const std::string& bytes);

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_ARTIFACT_STREAM_H_
