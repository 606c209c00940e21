#include "common/target/cuda/context.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/target/cuda/api.h"
#include "common/target/cuda/detect.h"
#include "common/target/cuda/error.h"
#include "common/target/gpu_context.h"

namespace hone::cuda {
namespace {

// CUDA aligns allocations to this number of bytes.
constexpr int64_t kAlignment = 256;

// A launch gets more shared memory than this only on request.
constexpr int64_t kCommonSharedBytes = 48 << 10;

// An attribute of a loaded kernel, or `otherwise` if the driver does not know it.
int AttributeOr(const Api& api, Function function, FunctionAttribute attribute, int otherwise) {
  int value = 0;
  return api.FuncGetAttribute(&value, attribute, function) == 0 ? value : otherwise;
}

// Prepares a kernel for blocks with this much shared memory in total. Returns the bytes that a
// launch must request because the code does not declare them. InvalidArgument: the device
// has less.
absl::StatusOr<unsigned> ReserveShared(const Api& api, Function function, int64_t shared_bytes) {
  const int64_t declared = AttributeOr(api, function, kFunctionSharedBytes, 0);
  const int64_t dynamic = std::max<int64_t>(shared_bytes - declared, 0);
  const int64_t reserved = AttributeOr(api, function, kFunctionMaxDynamicSharedBytes, 0);
  if (declared + dynamic > kCommonSharedBytes && dynamic > reserved) {
    HONE_RETURN_IF_ERROR(ToStatus(
        api.FuncSetAttribute(function, kFunctionMaxDynamicSharedBytes, static_cast<int>(dynamic)),
        absl::StrCat("reserve ", declared + dynamic, " bytes of shared memory")));
  }
  return static_cast<unsigned>(dynamic);
}

// A graph has at least this many launches. The host launches such a graph in less time than the
// device needs for this many tiny kernels, and recording it takes well under a millisecond.
constexpr int64_t kGraphLaunches = 32;

// The values of parameters: pointers and numbers.
std::vector<uint64_t> ParameterValues(absl::Span<const target::GpuArgument> arguments) {
  std::vector<uint64_t> values;
  for (const target::GpuArgument& argument : arguments) {
    if (const auto* const number = std::get_if<int32_t>(&argument)) {
      values.push_back(static_cast<uint32_t>(*number));  // little-endian: the lower half
    } else {
      const auto* const memory =
          static_cast<const CudaMemory*>(std::get<const target::GpuMemory*>(argument));
      values.push_back(memory == nullptr ? 0 : memory->data());
    }
  }
  return values;
}

// Puts a launch on a stream.
Result PutLaunch(const Api& api, CudaLaunch& launch, Stream stream) {
  absl::InlinedVector<void*, 8> parameters;
  for (uint64_t& value : launch.values) parameters.push_back(&value);
  return api.LaunchKernel(launch.function, launch.grid[0], launch.grid[1], launch.grid[2],
                          launch.block[0], launch.block[1], launch.block[2], launch.dynamic_bytes,
                          stream, parameters.data(), nullptr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Create(const Api& api,
                                                                 const DeviceFacts& facts) {
  auto made = std::unique_ptr<CudaContext>(new CudaContext(api));
  HONE_RETURN_IF_ERROR(ToStatus(api.CtxCreate(&made->context_, 0, facts.device),
                                absl::StrCat("make a CUDA context of ", facts.name)));
  size_t memory = 0;
  HONE_RETURN_IF_ERROR(ToStatus(api.DeviceTotalMem(&memory, facts.device),
                                absl::StrCat("ask for the memory of ", facts.name)));
  const auto ask = [&](int attribute, int otherwise) {
    return AttributeOr(api, facts.device, static_cast<DeviceAttribute>(attribute), otherwise);
  };
  made->uses_host = ask(kIntegrated, 0) != 0;
  made->bus_address = facts.pci;
  made->units = facts.target.cores;
  made->max_allocation_bytes =
      static_cast<int64_t>(std::min(memory, static_cast<size_t>(int64_t{1} << 60)));
  made->cache_bytes = facts.target.l2_bytes;
  made->shared_bytes = facts.target.gpu.shared_bytes;
  made->max_threads = facts.target.gpu.max_threads;
  for (int d = 0; d < 3; ++d) {
    made->max_block[d] = ask(kMaxBlockDimX + d, d == 2 ? 64 : 1024);
    made->max_grid[d] = ask(kMaxGridDimX + d, 65535);
  }
  made->buffer_alignment = kAlignment;
  absl::StatusOr<std::unique_ptr<NvmlDevice>> nvml = NvmlDevice::Open(facts.pci);
  if (nvml.ok()) made->nvml_ = *std::move(nvml);
  return made;
}

CudaContext::~CudaContext() {
  if (context_ != nullptr && !lost_) api_.CtxDestroy(context_);
}

absl::Status CudaContext::Check(Result code, absl::string_view what) {
  const absl::Status status = ToStatus(code, what);
  if (absl::IsAborted(status) || absl::IsUnavailable(status)) lost_ = true;
  return status;
}

absl::StatusOr<std::unique_ptr<target::GpuMemory>> CudaContext::Allocate(int64_t bytes,
                                                                         int64_t data_at,
                                                                         int64_t data_bytes) {
  DevicePointer pointer = 0;
  HONE_RETURN_IF_ERROR(
      Check(api().MemAlloc(&pointer, static_cast<size_t>(bytes)),
            absl::StrCat("no memory on the device for a buffer of ", data_bytes, " bytes")));
  return std::make_unique<CudaMemory>(*this, pointer, data_at);
}

absl::StatusOr<std::unique_ptr<target::GpuProgram>> CudaContext::Load(
    const target::GpuModule& module, absl::string_view what) {
  return CudaProgram::Create(*this, module, what);
}

target::GpuConditions CudaContext::Observe() {
  if (nvml_ == nullptr) return {};
  const NvmlState now = nvml_->Look();
  return {now.clock_mhz, now.temperature_c};
}

absl::StatusOr<std::unique_ptr<LaunchGraph>> LaunchGraph::Record(
    CudaContext& context, absl::FunctionRef<Result(Stream)> launch) {
  const Api& api = context.api();
  // The default stream cannot be recorded.
  Stream stream = nullptr;
  HONE_RETURN_IF_ERROR(ToStatus(api.StreamCreate(&stream, kStreamNonBlocking), "make a stream"));
  const absl::Cleanup destroy_stream = [&] { api.StreamDestroy(stream); };
  HONE_RETURN_IF_ERROR(
      ToStatus(api.StreamBeginCapture(stream, kCaptureThreadLocal), "begin a graph"));
  const Result launched = launch(stream);
  Graph graph = nullptr;
  const Result ended = api.StreamEndCapture(stream, &graph);
  const absl::Cleanup destroy_graph = [&] {
    if (graph != nullptr) api.GraphDestroy(graph);
  };
  HONE_RETURN_IF_ERROR(ToStatus(launched, "record a launch"));
  HONE_RETURN_IF_ERROR(ToStatus(ended, "end a graph"));
  GraphExec exec = nullptr;
  HONE_RETURN_IF_ERROR(ToStatus(api.GraphInstantiate(&exec, graph, 0), "prepare a graph"));
  return std::unique_ptr<LaunchGraph>(new LaunchGraph(context, exec));
}

LaunchGraph::~LaunchGraph() {
  if (!context_.lost()) context_.api().GraphExecDestroy(exec_);
}

absl::Status LaunchGraph::Launch() {
  return context_.Check(context_.api().GraphLaunch(exec_, nullptr), "launch a graph");
}

CudaMemory::~CudaMemory() {
  // A lost device refuses every call, and the process ends soon.
  if (!context_.lost()) context_.api().MemFree(pointer_);
}

absl::Status CudaMemory::Write(int64_t at, int64_t bytes, const void* from) {
  return context_.Check(context_.api().MemcpyHtoD(At(at), from, static_cast<size_t>(bytes)),
                        "write a buffer");
}

absl::Status CudaMemory::Read(int64_t at, int64_t bytes, void* to) {
  return context_.Check(context_.api().MemcpyDtoH(to, At(at), static_cast<size_t>(bytes)),
                        "read a buffer");
}

absl::Status CudaMemory::Fill(int64_t at, int64_t bytes, unsigned char value) {
  return context_.Check(context_.api().MemsetD8(At(at), value, static_cast<size_t>(bytes)),
                        "fill a buffer");
}

absl::StatusOr<std::unique_ptr<CudaProgram>> CudaProgram::Create(CudaContext& context,
                                                                 const target::GpuModule& module,
                                                                 absl::string_view what) {
  const Api& api = context.api();
  auto created = std::unique_ptr<CudaProgram>(new CudaProgram(context));
  HONE_RETURN_IF_ERROR(context.Check(api.ModuleLoadData(&created->module_, module.code.c_str()),
                                     absl::StrCat("load ", what)));
  for (Event* const event : {&created->begin_, &created->end_}) {
    HONE_RETURN_IF_ERROR(context.Check(api.EventCreate(event, 0), "make an event"));
  }
  for (const target::GpuLaunch& launch : module.launches) {
    HONE_RETURN_IF_ERROR(created->AddLaunch(launch));
  }
  return created;
}

CudaProgram::~CudaProgram() {
  graph_ = nullptr;  // before its kernels
  if (context_.lost()) return;
  for (const Event event : {begin_, end_}) {
    if (event != nullptr) context_.api().EventDestroy(event);
  }
  if (module_ != nullptr) context_.api().ModuleUnload(module_);
}

absl::Status CudaProgram::AddLaunch(const target::GpuLaunch& launch) {
  const Api& api = context_.api();
  CudaLaunch& added = launches_.emplace_back();
  added.name = target::PrintableName(launch);
  const auto refuse = [&](auto... why) {
    return absl::InvalidArgumentError(absl::StrCat("kernel '", added.name, "' ", why...));
  };
  HONE_RETURN_IF_ERROR(
      context_.Check(api.ModuleGetFunction(&added.function, module_, launch.kernel.c_str()),
                     absl::StrCat("find kernel '", added.name, "'")));
  const int most = AttributeOr(api, added.function, kFunctionMaxThreadsPerBlock,
                               static_cast<int>(context_.max_threads));
  if (launch.Threads() > most) {
    return refuse("has blocks of ", launch.Threads(),
                  " threads, but the device has registers for only ", most);
  }
  const int64_t declared = AttributeOr(api, added.function, kFunctionSharedBytes, 0);
  if (declared > context_.shared_bytes) {
    return refuse("uses ", declared, " bytes of shared memory; the device has ",
                  context_.shared_bytes);
  }
  HONE_ASSIGN_OR_RETURN(added.dynamic_bytes,
                        ReserveShared(api, added.function, launch.shared_bytes));
  for (size_t d = 0; d < 3; ++d) {
    added.grid[d] = static_cast<unsigned>(launch.grid[d]);
    added.block[d] = static_cast<unsigned>(launch.block[d]);
  }
  return absl::OkStatus();
}

absl::Status CudaProgram::SetArguments(size_t launch,
                                       absl::Span<const target::GpuArgument> arguments) {
  std::vector<uint64_t> values = ParameterValues(arguments);
  CudaLaunch& set = launches_[launch];
  if (values == set.values) return absl::OkStatus();
  graph_ = nullptr;  // it has the old arguments
  set.values = std::move(values);
  return absl::OkStatus();
}

LaunchGraph* CudaProgram::GraphOf(absl::Span<const size_t> launches, int64_t count) {
  if (!has_graphs_) return nullptr;
  if (graph_ != nullptr && launches == absl::MakeConstSpan(in_graph_)) return graph_.get();
  auto recorded = LaunchGraph::Record(context_, [&](Stream stream) {
    for (int64_t i = 0; i < count; ++i) {
      for (const size_t index : launches) {
        if (const Result code = PutLaunch(context_.api(), launches_[index], stream); code != 0)
          return code;
      }
    }
    return Result{0};
  });
  has_graphs_ = recorded.ok();
  graph_ = has_graphs_ ? *std::move(recorded) : nullptr;
  in_graph_.assign(launches.begin(), launches.end());
  return graph_.get();
}

absl::StatusOr<double> CudaProgram::Run(absl::Span<const size_t> launches, int64_t count) {
  const Api& api = context_.api();
  const auto of_run = static_cast<int64_t>(launches.size());
  const int64_t runs_of_graph = (kGraphLaunches + of_run - 1) / of_run;
  LaunchGraph* const graph = count >= runs_of_graph ? GraphOf(launches, runs_of_graph) : nullptr;
  const int64_t graphs = graph == nullptr ? 0 : count / runs_of_graph;
  const absl::Time begin = SteadyClock().Now();
  HONE_RETURN_IF_ERROR(context_.Check(api.EventRecord(begin_, nullptr), "record an event"));
  for (int64_t i = 0; i < graphs; ++i) HONE_RETURN_IF_ERROR(graph->Launch());
  // While the host launches the rest, the device is still busy with the graphs.
  for (int64_t i = graphs * runs_of_graph; i < count; ++i) {
    for (const size_t index : launches) {
      CudaLaunch& launch = launches_[index];
      HONE_RETURN_IF_ERROR(context_.Check(PutLaunch(api, launch, nullptr),
                                          absl::StrCat("launch kernel '", launch.name, "'")));
    }
  }
  // Faults of kernels are reported by later calls.
  const std::string failed =
      target::DeviceFailedText(launches_[launches.front()].name, launches_[launches.back()].name);
  HONE_RETURN_IF_ERROR(context_.Check(api.EventRecord(end_, nullptr), failed));
  HONE_RETURN_IF_ERROR(context_.Check(api.StreamSynchronize(nullptr), failed));
  const double host_ns = absl::ToDoubleNanoseconds(SteadyClock().Now() - begin);
  float milliseconds = 0;
  HONE_RETURN_IF_ERROR(
      context_.Check(api.EventElapsedTime(&milliseconds, begin_, end_), "read the time of events"));
  const double device_ns = 1e6 * static_cast<double>(milliseconds);
  return device_ns > 0 && device_ns <= host_ns ? device_ns : host_ns;
}

}  // namespace hone::cuda
