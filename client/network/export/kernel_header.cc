#include "client/network/export/kernel_header.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/network/export/c_text.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/target/kernel_abi.h"

namespace hone::client {
namespace {

constexpr char kFunctions[] = R"(#ifndef HONE_RUNTIME
#define HONE_RUNTIME
/* The threads that a kernel may use. parallel_for calls body(context, begin, end, thread) for parts
 * that cover [0, extent), each iteration once, and returns when all parts have ended. At most
 * `threads` parts run at the same time, each with another thread number from 0 to threads - 1. Kernels
 * were measured with parts that begin at thread * extent / threads if chunk is 0, and otherwise with
 * parts of `chunk` iterations that threads fetch when they are free. */
typedef struct HoneRuntime HoneRuntime;
struct HoneRuntime {
  void (*parallel_for)(const HoneRuntime* runtime, int64_t extent, int64_t chunk, int32_t threads,
                       void (*body)(void* context, int64_t begin, int64_t end, int64_t thread),
                       void* context);
  int32_t threads; /* the number of threads, at least 1 */
};
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. */
int32_t hone_kernel_abi(void);
/* The largest number of threads that run can use. */
int32_t hone_kernel_threads(void);
/* Bytes of workspace that one call of run needs with a runtime of this many threads; 0: workspace may be null. */
int64_t hone_kernel_workspace_bytes(int32_t threads);
/* Bytes of the packed constants; 0: prepack is not needed, and packed may be null. */
int64_t hone_kernel_packed_bytes(void);
/* Packs constant inputs on the calling thread. Call it once, before run. It reads the inputs below that say so; the other
 * pointers may be null. */
int32_t hone_kernel_prepack(void* const* buffers, void* packed);
/* Computes the outputs. Returns HONE_KERNEL_OK or one of the codes below. Outputs overlap no other buffer. Without a runtime,
 * everything runs on the calling thread. It keeps no state: calls with different outputs and workspaces may run at the same
 * time. */
int32_t hone_kernel_run(void* const* buffers, const void* packed, void* workspace, const HoneRuntime* runtime);
/* The number of iterations of the last parallel loop (0: no parallel loop), and a function that runs a part of them on the
 * calling thread, as the thread with this number, which is below the number given to workspace_bytes. It is for measurements:
 * what the loop reads is there only during run. */
int64_t hone_kernel_range_extent(void);
int32_t hone_kernel_range(void* const* buffers, const void* packed, void* workspace, int64_t begin, int64_t end,
                          int64_t thread);
/* Hone's own threads, if the program has none: compile hone_threads.c, which is in the folder of an export, as C11. This returns
 * a runtime with this many threads, of which one is the calling thread; 0: as many as OMP_NUM_THREADS says, or else as there are
 * CPUs that the process may use. The others sleep while nothing runs. Kernels were measured with the same threads. */
HoneRuntime hone_threads(int32_t threads);

#ifdef __cplusplus
}
#endif
)";

}  // namespace

std::string KernelHeader(const ir::Workload& workload, const KernelFacts& facts) {
  const std::string prefix = MacroPrefix(CIdentifier(facts.name));
  const std::vector<ir::BufferId> buffers = BuffersOf(workload);
  std::string text =
      absl::StrCat("/* A kernel made by Hone ", HONE_VERSION, " for ", facts.target_key,
                   ". It computes\n *\n", CommentLines(workload.ToText()), " *\n");
  if (!facts.cpu_features.empty()) {
    absl::StrAppend(&text, " * It needs a CPU with ", facts.cpu_features,
                    ", and returns an error on any other.\n");
    if (absl::StrContains(facts.cpu_features, "amx-")) {
      absl::StrAppend(&text,
                      " * If it uses AMX tiles, its first call asks Linux for their registers "
                      "(arch_prctl), for all threads\n * of the process. If Linux refuses, it "
                      "returns HONE_KERNEL_UNSUPPORTED_CPU.\n");
    }
  }
  absl::StrAppend(&text, MeasuredLine(facts.latency_ns, facts.gflops));
  const std::string functions = absl::StrCat(CIdentifier(facts.name), "_");
  absl::StrAppend(
      &text,
      " *\n * Link the object file or the shared object, or load the shared object with "
      "dlopen. The functions of\n * both begin with ",
      functions, ". Several kernels can be in one program.\n");
  // Written with kFunctionPrefix, which is replaced by the prefix of this kernel at the end.
  std::string body;
  absl::StrAppend(
      &body,
      " *\n * Example:\n"
      " *   void* buffers[] = {",
      absl::StrJoin(buffers, ", ",
                    [&](std::string* out, ir::BufferId id) {
                      absl::StrAppend(out, CIdentifier(workload.tensors[id].name));
                    }),
      "};  (each aligned to ", target::kBufferAlignment,
      " bytes)\n"
      " *   void* packed = hone_kernel_packed_bytes() ? aligned_alloc(",
      target::kBufferAlignment,
      ", hone_kernel_packed_bytes()) : NULL;\n"
      " *   HoneRuntime runtime = hone_threads(0);  (hone_threads.c, or your own threads)\n"
      " *   int64_t bytes = hone_kernel_workspace_bytes(runtime.threads);\n"
      " *   void* workspace = bytes ? aligned_alloc(",
      target::kBufferAlignment,
      ", bytes) : NULL;\n"
      " *   if (packed && hone_kernel_prepack(buffers, packed) != HONE_KERNEL_OK) abort();\n"
      " *   if (hone_kernel_run(buffers, packed, workspace, &runtime) != HONE_KERNEL_OK) abort();\n"
      " */\n");
  absl::StrAppend(&body, "#ifndef HONE_KERNEL_", prefix, "_H\n#define HONE_KERNEL_", prefix,
                  "_H\n\n#include <stdint.h>\n\n");
  absl::StrAppend(&body, kFunctions, "\n");
  absl::StrAppend(
      &body, "#ifndef HONE_KERNEL_OK\n#define HONE_KERNEL_OK ", static_cast<int>(target::kKernelOk),
      "\n#define HONE_KERNEL_UNSUPPORTED_CPU ", static_cast<int>(target::kKernelUnsupportedCpu),
      "    /* the CPU lacks a feature that the code uses */\n#define "
      "HONE_KERNEL_MISALIGNED_BUFFER ",
      static_cast<int>(target::kKernelMisalignedBuffer),
      "  /* a pointer that is used is null or not aligned */\n#endif\n#ifndef HONE_KERNEL_OVERLAP\n"
      "#define HONE_KERNEL_OVERLAP ",
      static_cast<int>(target::kKernelOverlap),
      "  /* an output overlaps another buffer */\n#endif\n\n");
  absl::StrAppend(
      &body,
      "/* Alignment in bytes of every buffer, the packed constants and the workspace. */\n#define ",
      prefix, "_ALIGNMENT ", target::kBufferAlignment, "\n");
  absl::StrAppend(&body,
                  "/* Length of the array of buffers: dense, row-major, inputs first. */\n#define ",
                  prefix, "_BUFFERS ", buffers.size(), "\n\n");
  absl::StrAppend(&body, BufferMacros(prefix, workload, [&](size_t input) -> std::string {
    if (facts.reads.empty() || facts.reads[input]) {
      return "constant: read by hone_kernel_run, and by hone_kernel_prepack if it is packed, too";
    }
    return absl::StrCat(
        "constant: read by hone_kernel_prepack only. Afterwards its memory may be "
        "freed, ",
        facts.accepts_null ? "and its pointer may be null"
                           : "but its pointer must stay aligned and not null");
  }));
  absl::StrAppend(&body, "#endif\n");
  return text + absl::StrReplaceAll(body, {{target::kFunctionPrefix, functions}});
}

}  // namespace hone::client
