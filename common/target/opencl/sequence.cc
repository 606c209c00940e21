#include "common/target/opencl/sequence.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::opencl {

absl::Status OpenClSequence::AddLaunch(target::GpuProgram& program, size_t launch,
                                       absl::Span<const target::GpuArgument> arguments) {
  HONE_ASSIGN_OR_RETURN(OpenClProgram::Launch copy,
                        static_cast<OpenClProgram&>(program).CopyOf(launch));
  HONE_RETURN_IF_ERROR(SetParameters(context_, copy.kernel.get(), copy.name, arguments));
  steps_.back().emplace_back(std::move(copy));
  return absl::OkStatus();
}

absl::Status OpenClSequence::AddCopy(const target::GpuMemory& from, target::GpuMemory& to,
                                     int64_t bytes) {
  steps_.back().emplace_back(Copy{static_cast<const OpenClMemory&>(from).data(),
                                  static_cast<OpenClMemory&>(to).data(),
                                  static_cast<size_t>(bytes)});
  return absl::OkStatus();
}

absl::Status OpenClSequence::Enqueue(const Command& command, cl_event* event) {
  const Api& api = context_.api();
  if (const auto* const copy = std::get_if<Copy>(&command)) {
    return context_.Check(api.EnqueueCopyBuffer(context_.queue(), copy->from, copy->to, 0, 0,
                                                copy->bytes, 0, nullptr, event),
                          "copy a buffer");
  }
  const auto& launch = std::get<OpenClProgram::Launch>(command);
  return context_.Check(
      api.EnqueueNDRangeKernel(context_.queue(), launch.kernel.get(), 3, nullptr,
                               launch.global.data(), launch.local.data(), 0, nullptr, event),
      absl::StrCat("launch kernel '", launch.name, "'"));
}

absl::Status OpenClSequence::Enqueue(absl::Span<const target::GpuUpload> uploads,
                                     absl::Span<const target::GpuDownload> downloads,
                                     std::vector<ClOwned<cl_event>>* events) {
  const Api& api = context_.api();
  for (const target::GpuUpload& upload : uploads) {
    HONE_RETURN_IF_ERROR(context_.Check(
        api.EnqueueWriteBuffer(context_.queue(), static_cast<OpenClMemory*>(upload.to)->data(),
                               CL_FALSE, 0, static_cast<size_t>(upload.bytes), upload.from, 0,
                               nullptr, nullptr),
        "write a buffer"));
  }
  for (const Step& step : steps_) {
    for (const Command& command : step) {
      const bool marks =
          events != nullptr && (&command == &step.front() || &command == &step.back());
      cl_event event = nullptr;
      HONE_RETURN_IF_ERROR(Enqueue(command, marks ? &event : nullptr));
      if (marks) events->emplace_back(event, api.ReleaseEvent);
    }
  }
  for (const target::GpuDownload& download : downloads) {
    HONE_RETURN_IF_ERROR(context_.Check(
        api.EnqueueReadBuffer(context_.queue(), static_cast<OpenClMemory*>(download.from)->data(),
                              CL_FALSE, 0, static_cast<size_t>(download.bytes), download.to, 0,
                              nullptr, nullptr),
        "read a buffer"));
  }
  return absl::OkStatus();
}

absl::Status OpenClSequence::Run(absl::Span<const target::GpuUpload> uploads,
                                 absl::Span<const target::GpuDownload> downloads,
                                 std::vector<double>* step_ns) {
  std::vector<ClOwned<cl_event>> events;
  absl::Status status = Enqueue(uploads, downloads, step_ns == nullptr ? nullptr : &events);
  // Even after an error, because the device may still use the caller's memory.
  status.Update(context_.Finish("wait for the kernels"));
  HONE_RETURN_IF_ERROR(status);
  if (step_ns == nullptr) return absl::OkStatus();
  step_ns->clear();
  size_t next = 0;
  for (const Step& step : steps_) {
    const size_t marks = std::min<size_t>(step.size(), 2);
    step_ns->push_back(
        marks == 0 ? 0
                   : Between(context_.api(), events[next].get(), events[next + marks - 1].get()));
    next += marks;
  }
  return absl::OkStatus();
}

}  // namespace hone::opencl
