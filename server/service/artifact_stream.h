#ifndef HONE_SERVER_SERVICE_ARTIFACT_STREAM_H_
#define HONE_SERVER_SERVICE_ARTIFACT_STREAM_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/deflate.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "grpcpp/support/server_callback.h"
#include "server/service/gate.h"
#include "server/service/services.h"
#include "server/service/transfer_handler.h"

namespace hone::service {

// A stream of chunks to a caller. One that is not read is ended. Deletes itself when it is done.
template <typename Chunk>
class Download : public grpc::ServerWriteReactor<Chunk> {
 public:
  Download(const Dependencies& deps, Context* context)
      : downloads_(*deps.downloads),
        number_(downloads_.Enter([context] { context->TryCancel(); })) {
    downloads_.Pause(number_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) return SendNext();
    this->Finish(grpc::Status(grpc::StatusCode::CANCELLED,
                              "the receiver disconnected, or did not read for too long"));
  }
  void OnDone() override {
    downloads_.Leave(number_);
    delete this;
  }

 protected:
  ~Download() override = default;
  // Called when a chunk was sent. Sends the next one, or finishes.
  virtual void SendNext() = 0;
  absl::Status Reserve(int64_t bytes, const void* shared = nullptr) {
    return downloads_.Reserve(number_, bytes, shared);
  }
  // Called when the stream waits for this server.
  void Pause() { downloads_.Pause(number_); }
  void Write(const Chunk& chunk) {
    downloads_.Progress(number_);
    this->StartWrite(&chunk);
  }

 private:
  TransferHandler& downloads_;
  const int64_t number_;
};

// Sends an artifact, without its first `offset` bytes, in chunks of at most rpc::kChunkBytes; the
// first chunk has the digest, the size and the offset. Chunk is one of the two chunk messages.
// With `deflate`, chunks that become shorter are compressed. InvalidArgument: the artifact is
// shorter. ResourceExhausted: other downloads hold too much memory. A download that is not read is
// ended. Deletes itself when it is done.
template <typename Chunk>
class ArtifactWriter final : public Download<Chunk> {
 public:
  // What is sent is not known yet, so that it may be read from the store.
  ArtifactWriter(const Dependencies& deps, Context* context, int64_t offset = 0,
                 bool deflate = false)
      : Download<Chunk>(deps, context), offset_(offset), deflate_(deflate) {}
  // Begins to send the bytes, or ends with their error. Called once, by any thread.
  void Send(const std::string& digest, absl::StatusOr<std::shared_ptr<const std::string>> bytes) {
    const absl::Status begun = Begin(digest, std::move(bytes));
    begun.ok() ? Next() : this->Finish(rpc::ToGrpc(begun));
  }

 private:
  ~ArtifactWriter() override = default;
  absl::Status Begin(const std::string& digest,
                     absl::StatusOr<std::shared_ptr<const std::string>> bytes) {
    HONE_ASSIGN_OR_RETURN(bytes_, std::move(bytes));
    const auto size = static_cast<int64_t>(bytes_->size());
    HONE_RETURN_IF_ERROR(this->Reserve(size, bytes_.get()));
    if (offset_ < 0 || offset_ > size) {
      return absl::InvalidArgumentError(
          absl::StrCat("offset ", offset_, ": the artifact ", digest, " has ", size, " bytes"));
    }
    chunk_.set_digest(digest);
    chunk_.set_total_bytes(size);
    if constexpr (requires { chunk_.set_offset(offset_); }) chunk_.set_offset(offset_);
    sent_ = static_cast<size_t>(offset_);
    return absl::OkStatus();
  }
  void SendNext() override {
    if (sent_ == bytes_->size()) return this->Finish(grpc::Status::OK);
    chunk_.Clear();
    Next();
  }
  void Next() {
    const size_t size = std::min<size_t>(rpc::kChunkBytes, bytes_->size() - sent_);
    const absl::string_view part(bytes_->data() + sent_, size);
    std::string deflated;
    if constexpr (requires { chunk_.set_deflated(deflated); }) {
      if (deflate_) deflated = Deflate(part);
      if (!deflated.empty() && deflated.size() < size) chunk_.set_deflated(std::move(deflated));
      if (chunk_.deflated().empty()) chunk_.set_data(part.data(), size);
    } else {
      chunk_.set_data(part.data(), size);
    }
    sent_ += size;
    this->Write(chunk_);
  }

  const int64_t offset_;
  const bool deflate_;
  std::shared_ptr<const std::string> bytes_;
  size_t sent_ = 0;
  Chunk chunk_;
};

// Sends an artifact from the cache, which also has those that are not published, or else from the
// store. NotFound: it is in neither. `may_have_cached`: whether the caller may have one from the
// cache; null: yes. It may read the store.
template <typename Chunk>
grpc::ServerWriteReactor<Chunk>* SendArtifact(const Dependencies& deps, const Call& call,
                                              const std::string& digest, int64_t offset = 0,
                                              bool deflate = false,
                                              std::function<bool()> may_have_cached = nullptr) {
  auto* writer = new ArtifactWriter<Chunk>(deps, call.context, offset, deflate);
  std::shared_ptr<const std::string> cached = deps.artifacts->Get(digest);
  if (cached != nullptr && may_have_cached == nullptr) {
    writer->Send(digest, std::move(cached));
    return writer;
  }
  const auto send = [&deps, writer, digest, cached = std::move(cached),
                     may_have_cached = std::move(may_have_cached)](const absl::Status& admitted) {
    absl::StatusOr<std::shared_ptr<const std::string>> bytes = cached;
    const absl::Status read = job::Attempt([&]() -> absl::Status {
      HONE_RETURN_IF_ERROR(admitted);
      if (cached != nullptr && may_have_cached()) return absl::OkStatus();
      HONE_ASSIGN_OR_RETURN(std::string found, deps.store->GetArtifact(digest));
      bytes = std::make_shared<const std::string>(std::move(found));
      return absl::OkStatus();
    });
    if (!read.ok()) bytes = read;
    writer->Send(digest, std::move(bytes));
  };
  deps.readers->Run(ReadOf(ReaderLane::kShort, call), send);
  return writer;
}

// Receives an artifact in chunks: the first one has the name and the size. Chunk is one of the two
// chunk messages. Deletes itself when it is done.
template <typename Chunk, typename Response>
class ArtifactReader final : public grpc::ServerReadReactor<Chunk> {
 public:
  struct Handler {
    std::function<absl::Status(const std::string& name)> check;  // before anything is received
    // Keeps the bytes and calls `done`, on any thread. The response must not change afterwards.
    std::function<void(const std::string& name, std::string bytes,
                       std::function<void(const absl::Status&)> done)>
        keep;
  };
  ArtifactReader(const Dependencies& deps, Context* context, Response* response, Handler handler)
      : deps_(deps),
        number_(deps.uploads->Enter([context] { context->TryCancel(); })),
        response_(response),
        handler_(std::move(handler)) {
    this->StartRead(&chunk_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return End();
    deps_.uploads->Progress(number_);
    if (const size_t size = chunk_.ByteSizeLong(); size > kMaxChunkBytes) {
      return this->Finish(rpc::ToGrpc(RequestTooLong(size, kMaxChunkBytes)));
    }
    if (name_.empty()) {
      name_ = chunk_.digest();
      total_ = chunk_.total_bytes();
      if (const absl::Status named = handler_.check(name_); !named.ok()) {
        return Refuse(named.message());
      }
      if (total_ <= 0 || total_ > fleet::ArtifactCache::kMaxArtifactBytes) {
        return Refuse(absl::StrCat("total_bytes must be from 1 to ",
                                   fleet::ArtifactCache::kMaxArtifactBytes));
      }
      if (const absl::Status room = deps_.uploads->Reserve(number_, total_); !room.ok()) {
        return this->Finish(rpc::ToGrpc(room));
      }
    }
    bytes_ += chunk_.data();
    if (static_cast<int64_t>(bytes_.size()) > total_) {
      return Refuse("more bytes were received than announced");
    }
    this->StartRead(&chunk_);
  }
  void OnDone() override {
    deps_.uploads->Leave(number_);
    delete this;
  }

 private:
  ~ArtifactReader() override = default;
  void Refuse(absl::string_view why) {
    this->Finish(rpc::ToGrpc(absl::InvalidArgumentError(absl::StrCat("upload: ", why))));
  }
  void End() {
    deps_.uploads->Pause(number_);
    if (name_.empty() || static_cast<int64_t>(bytes_.size()) != total_) {
      return Refuse("it ended before all announced bytes were received");
    }
    if constexpr (requires { response_->set_digest(name_); }) response_->set_digest(name_);
    handler_.keep(name_, std::move(bytes_),
                  [this](const absl::Status& kept) { this->Finish(rpc::ToGrpc(kept)); });
  }

  const Dependencies& deps_;
  const int64_t number_;
  Response* const response_;
  const Handler handler_;
  Chunk chunk_;
  std::string name_;
  int64_t total_ = 0;
  std::string bytes_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_ARTIFACT_STREAM_H_
