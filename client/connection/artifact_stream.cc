#include "client/connection/artifact_stream.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"

namespace hone::client {
namespace {

constexpr int64_t kMostReceived = int64_t{1} << 30;

}  // namespace

absl::Status ReceiveArtifact(grpc::ClientContext& context,
                             grpc::ClientReader<v1::ArtifactChunk>& reader, const std::string& what,
                             std::string& bytes, std::string& digest) {
  v1::ArtifactChunk chunk;
  while (reader.Read(&chunk)) {
    if (bytes.empty()) digest = chunk.digest();
    bytes.append(chunk.data());
    if (static_cast<int64_t>(bytes.size()) > kMostReceived) {
      context.TryCancel();
      reader.Finish();
      return absl::DataLossError(absl::StrCat(what, " exceeds the size limit of artifacts"));
    }
  }
  return rpc::FromGrpc(reader.Finish());
}

absl::Status SendArtifact(grpc::ClientWriter<v1::ArtifactChunk>& writer, const std::string& digest,
                          const std::string& bytes) {
  v1::ArtifactChunk chunk;
  chunk.set_digest(digest);
  chunk.set_total_bytes(static_cast<int64_t>(bytes.size()));
  for (size_t sent = 0; sent < bytes.size(); sent += rpc::kChunkBytes) {
    chunk.set_data(bytes.substr(sent, rpc::kChunkBytes));
    if (!writer.Write(chunk)) break;
    chunk.Clear();
  }
  writer.WritesDone();
  return rpc::FromGrpc(writer.Finish());
}

}  // namespace hone::client
