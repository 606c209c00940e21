#include "worker/runner/opencl_buffer.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::runner {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kCanaryBytes = 4096;
constexpr unsigned char kCanary = 0xa5;
constexpr unsigned char kPoison = 0xff;

// A device that is out of memory may say so in several ways, some only at the first use.
absl::Status OutOfMemory(int64_t bytes, cl_int code) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory on the device for a buffer of ", bytes, " bytes (code ", code, ")"));
}

std::unique_ptr<char[]> HostMemory(int64_t bytes) {
  return std::unique_ptr<char[]>(new (std::nothrow) char[static_cast<size_t>(bytes)]);
}

absl::Status NoHostMemory(int64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory on the host for a copy of ", bytes, " bytes"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<OpenClBuffer>> OpenClBuffer::Create(OpenClContext& context,
                                                                   int64_t bytes,
                                                                   uint64_t placement) {
  const int64_t alignment = context.buffer_alignment;
  const auto wanted = kCanaryBytes + static_cast<int64_t>(placement % kPage);
  const int64_t offset = (wanted + alignment - 1) / alignment * alignment;
  const int64_t most = context.max_allocation_bytes - offset - kCanaryBytes;
  if (bytes <= 0 || bytes > most) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a buffer of ", bytes, " bytes; the device allows 1 to ", most, " in one buffer"));
  }
  auto buffer = std::unique_ptr<OpenClBuffer>(new OpenClBuffer(context, bytes, offset));
  const opencl::Api& api = context.api();
  const auto size = static_cast<size_t>(offset + bytes + kCanaryBytes);
  cl_int code = CL_SUCCESS;
  buffer->allocation_.reset(
      api.CreateBuffer(context.context(), CL_MEM_READ_WRITE, size, nullptr, &code));
  if (code != CL_SUCCESS) return OutOfMemory(bytes, code);
  const cl_buffer_region region = {static_cast<size_t>(offset), static_cast<size_t>(bytes)};
  buffer->data_.reset(api.CreateSubBuffer(buffer->allocation_.get(), CL_MEM_READ_WRITE,
                                          CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
  HONE_RETURN_IF_ERROR(context.Check(code, "place a buffer"));
  code = api.EnqueueFillBuffer(context.queue(), buffer->allocation_.get(), &kCanary,
                               sizeof(kCanary), 0, size, 0, nullptr, nullptr);
  if (code == CL_SUCCESS) code = api.Finish(context.queue());
  if (code != CL_SUCCESS) return OutOfMemory(bytes, code);
  return buffer;
}

absl::Status OpenClBuffer::Write(absl::FunctionRef<void(void*)> fill) {
  host_ = nullptr;
  const std::unique_ptr<char[]> content = HostMemory(bytes_);
  if (content == nullptr) return NoHostMemory(bytes_);
  fill(content.get());
  return context_.Check(context_.api().EnqueueWriteBuffer(context_.queue(), data_.get(), CL_TRUE, 0,
                                                          static_cast<size_t>(bytes_),
                                                          content.get(), 0, nullptr, nullptr),
                        "write a buffer");
}

absl::StatusOr<const void*> OpenClBuffer::Read() {
  if (host_ == nullptr) host_ = HostMemory(bytes_);
  if (host_ == nullptr) return NoHostMemory(bytes_);
  HONE_RETURN_IF_ERROR(
      context_.Check(context_.api().EnqueueReadBuffer(context_.queue(), data_.get(), CL_TRUE, 0,
                                                      static_cast<size_t>(bytes_), host_.get(), 0,
                                                      nullptr, nullptr),
                     "read a buffer"));
  return host_.get();
}

absl::Status OpenClBuffer::Poison() {
  host_ = nullptr;
  HONE_RETURN_IF_ERROR(context_.Check(
      context_.api().EnqueueFillBuffer(context_.queue(), data_.get(), &kPoison, sizeof(kPoison), 0,
                                       static_cast<size_t>(bytes_), 0, nullptr, nullptr),
      "poison a buffer"));
  return context_.Finish("poison a buffer");
}

absl::Status OpenClBuffer::FillCanaries() {
  for (const int64_t at : {offset_ - kCanaryBytes, offset_ + bytes_}) {
    HONE_RETURN_IF_ERROR(context_.Check(
        context_.api().EnqueueFillBuffer(context_.queue(), allocation_.get(), &kCanary,
                                         sizeof(kCanary), static_cast<size_t>(at), kCanaryBytes, 0,
                                         nullptr, nullptr),
        "restore a canary"));
  }
  return context_.Finish("restore a canary");
}

absl::StatusOr<std::optional<int64_t>> OpenClBuffer::WrittenOutside() {
  std::array<unsigned char, kCanaryBytes> before, behind;
  for (const auto& [at, to] : {std::pair{offset_ - kCanaryBytes, before.data()},
                               std::pair{offset_ + bytes_, behind.data()}}) {
    HONE_RETURN_IF_ERROR(
        context_.Check(context_.api().EnqueueReadBuffer(context_.queue(), allocation_.get(),
                                                        CL_TRUE, static_cast<size_t>(at),
                                                        kCanaryBytes, to, 0, nullptr, nullptr),
                       "read a canary"));
  }
  std::optional<int64_t> found;
  for (int64_t i = 0; i < kCanaryBytes && !found; ++i) {
    if (behind[i] != kCanary) found = bytes_ + i;
    if (before[kCanaryBytes - 1 - i] != kCanary) found = -1 - i;
  }
  if (found) HONE_RETURN_IF_ERROR(FillCanaries());
  return found;
}

}  // namespace hone::runner
