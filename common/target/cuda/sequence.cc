#include "common/target/cuda/sequence.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::cuda {

CudaSequence::~CudaSequence() {
  graph_ = nullptr;
  if (context_.lost()) return;
  for (const Event event : events_) context_.api().EventDestroy(event);
}

absl::Status CudaSequence::AddLaunch(target::GpuProgram& program, size_t launch,
                                     absl::Span<const target::GpuArgument> arguments) {
  CudaLaunch copy = static_cast<CudaProgram&>(program).launch(launch);
  copy.values = ParameterValues(arguments);
  steps_.back().emplace_back(std::move(copy));
  graph_ = nullptr;
  return absl::OkStatus();
}

absl::Status CudaSequence::AddCopy(const target::GpuMemory& from, target::GpuMemory& to,
                                   int64_t bytes) {
  steps_.back().emplace_back(Copy{static_cast<const CudaMemory&>(from).data(),
                                  static_cast<CudaMemory&>(to).data(), static_cast<size_t>(bytes)});
  graph_ = nullptr;
  return absl::OkStatus();
}

Result CudaSequence::Put(Command& command, Stream stream) {
  if (const auto* const copy = std::get_if<Copy>(&command)) {
    return context_.api().MemcpyDtoDAsync(copy->to, copy->from, copy->bytes, stream);
  }
  return PutLaunch(context_.api(), std::get<CudaLaunch>(command), stream);
}

absl::StatusOr<bool> CudaSequence::RunAsGraph() {
  if (!has_graph_) return false;
  if (graph_ == nullptr) {
    auto recorded = LaunchGraph::Record(context_, [&](Stream stream) {
      for (Step& step : steps_) {
        for (Command& command : step) {
          if (const Result code = Put(command, stream); code != 0) return code;
        }
      }
      return Result{0};
    });
    has_graph_ = recorded.ok();
    if (!has_graph_) return false;
    graph_ = *std::move(recorded);
  }
  HONE_RETURN_IF_ERROR(graph_->Launch());
  return true;
}

absl::Status CudaSequence::MakeEvents() {
  while (events_.size() <= steps_.size()) {
    Event event = nullptr;
    HONE_RETURN_IF_ERROR(context_.Check(context_.api().EventCreate(&event, 0), "make an event"));
    events_.push_back(event);
  }
  return absl::OkStatus();
}

absl::Status CudaSequence::RunOneByOne(bool timed) {
  const auto record = [&](size_t event) {
    return timed ? context_.Check(context_.api().EventRecord(events_[event], nullptr),
                                  "record an event")
                 : absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(record(0));
  for (size_t s = 0; s < steps_.size(); ++s) {
    for (Command& command : steps_[s]) {
      const auto* const launch = std::get_if<CudaLaunch>(&command);
      HONE_RETURN_IF_ERROR(context_.Check(
          Put(command, nullptr), launch == nullptr
                                     ? std::string("copy a buffer")
                                     : absl::StrCat("launch kernel '", launch->name, "'")));
    }
    HONE_RETURN_IF_ERROR(record(s + 1));
  }
  return absl::OkStatus();
}

absl::Status CudaSequence::Run(absl::Span<const target::GpuUpload> uploads,
                               absl::Span<const target::GpuDownload> downloads,
                               std::vector<double>* step_ns) {
  const Api& api = context_.api();
  const auto put_all = [&]() -> absl::Status {
    for (const target::GpuUpload& upload : uploads) {
      HONE_RETURN_IF_ERROR(context_.Check(
          api.MemcpyHtoDAsync(static_cast<CudaMemory*>(upload.to)->data(), upload.from,
                              static_cast<size_t>(upload.bytes), nullptr),
          "write a buffer"));
    }
    bool done = false;
    if (step_ns == nullptr) {
      HONE_ASSIGN_OR_RETURN(done, RunAsGraph());
    } else {
      HONE_RETURN_IF_ERROR(MakeEvents());
    }
    if (!done) HONE_RETURN_IF_ERROR(RunOneByOne(/*timed=*/step_ns != nullptr));
    for (const target::GpuDownload& download : downloads) {
      HONE_RETURN_IF_ERROR(context_.Check(
          api.MemcpyDtoHAsync(download.to, static_cast<CudaMemory*>(download.from)->data(),
                              static_cast<size_t>(download.bytes), nullptr),
          "read a buffer"));
    }
    return absl::OkStatus();
  };
  absl::Status status = put_all();
  // Even after an error, because the device may still use the caller's memory. Faults of kernels
  // are reported here, or by any of the calls above.
  status.Update(context_.Check(api.StreamSynchronize(nullptr), "wait for the kernels"));
  HONE_RETURN_IF_ERROR(status);
  if (step_ns == nullptr) return absl::OkStatus();
  step_ns->clear();
  for (size_t s = 0; s < steps_.size(); ++s) {
    float milliseconds = 0;
    HONE_RETURN_IF_ERROR(
        context_.Check(api.EventElapsedTime(&milliseconds, events_[s], events_[s + 1]),
                       "read the time of events"));
    step_ns->push_back(1e6 * static_cast<double>(milliseconds));
  }
  return absl::OkStatus();
}

}  // namespace hone::cuda
