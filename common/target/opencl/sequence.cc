#include "common/target/opencl/sequence.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/steady_clock.h"

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
                                     absl::Span<const target::GpuDownload> downloads, bool timed,
                                     Events& events) {
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
      const bool is_end = &command == &step.front() || &command == &step.back();
      const bool is_last = &step == &steps_.back() && &command == &step.back();
      cl_event event = nullptr;
      HONE_RETURN_IF_ERROR(Enqueue(command, (timed && is_end) || is_last ? &event : nullptr));
      if (timed && is_end) {
        events.of_steps.emplace_back(event, api.ReleaseEvent);
      } else if (is_last) {
        events.last.reset(event);
      }
    }
  }
  for (const target::GpuDownload& download : downloads) {
    cl_event event = nullptr;
    HONE_RETURN_IF_ERROR(context_.Check(
        api.EnqueueReadBuffer(context_.queue(), static_cast<OpenClMemory*>(download.from)->data(),
                              CL_FALSE, 0, static_cast<size_t>(download.bytes), download.to, 0,
                              nullptr, &event),
        "read a buffer"));
    events.last.reset(event);
  }
  return absl::OkStatus();
}

std::vector<double> OpenClSequence::StepTimes(const Events& events, double host_ns) const {
  std::vector<double> times;
  double sum = 0;
  size_t next = 0;
  for (const Step& step : steps_) {
    const size_t marks = std::min<size_t>(step.size(), 2);
    times.push_back(marks == 0 ? 0
                               : Between(context_.api(), events.of_steps[next].get(),
                                         events.of_steps[next + marks - 1].get()));
    sum += times.back();
    next += marks;
  }
  if (sum > host_ns) times.assign(times.size(), 0);
  return times;
}

absl::Status OpenClSequence::Run(absl::Span<const target::GpuUpload> uploads,
                                 absl::Span<const target::GpuDownload> downloads,
                                 std::vector<double>* step_ns) {
  const Api& api = context_.api();
  Events events{.last = {nullptr, api.ReleaseEvent}};
  const absl::Time begin = SteadyClock().Now();
  absl::Status status = Enqueue(uploads, downloads, step_ns != nullptr, events);
  // Even after an error, because the device may still use the caller's memory.
  status.Update(context_.Finish("wait for the kernels"));
  const double host_ns = absl::ToDoubleNanoseconds(SteadyClock().Now() - begin);
  HONE_RETURN_IF_ERROR(status);
  // A kernel that fails ends the commands behind it, which some drivers report only here.
  cl_int state = CL_COMPLETE;
  if (events.last != nullptr) {
    api.GetEventInfo(events.last.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state,
                     nullptr);
  }
  if (state < 0) HONE_RETURN_IF_ERROR(context_.Check(state, "wait for the kernels"));
  if (step_ns != nullptr) *step_ns = StepTimes(events, host_ns);
  return absl::OkStatus();
}

}  // namespace hone::opencl
