/* What a network is opened from: its plan and its kernels. client/network/export/export.cc
 * writes it into the shared object of an exported network; client/network/plan/runner.cc makes it
 * for kernels that it has loaded. */
#ifndef HONE_CLIENT_NETWORK_RUNTIME_HONE_PROGRAM_H_
#define HONE_CLIENT_NETWORK_RUNTIME_HONE_PROGRAM_H_

#include <stdint.h>

#include "client/network/runtime/hone_network.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The functions of one kernel, see common/target/kernel_abi.h. */
typedef struct hone_network_kernel {
  int32_t (*abi)(void);
  int64_t (*workspace_bytes)(int32_t threads);
  int64_t (*packed_bytes)(void);
  int32_t (*run)(void* const* buffers, const void* packed, void* workspace,
                 const HoneRuntime* runtime);
} hone_network_kernel;

typedef struct hone_network_program {
  const void* plan; /* plan_format.h; aligned to 8 bytes */
  uint64_t plan_bytes;
  const hone_network_kernel* kernels; /* of a CPU, one for each kernel of the plan */
  uint64_t kernel_count;
  const struct HoneBackend* backend;
} hone_network_program;

/* What runs networks on a kind of device (backend.h). */
extern __attribute__((visibility("hidden"))) const struct HoneBackend hone_cpu_backend,
    hone_cuda_backend, hone_opencl_backend;

/* Opens this program as hone_network_open_on does; the program must outlive the network. BAD_FILE
 * also means that the plan is malformed. Callers of an exported network do not see this function.
 */
__attribute__((visibility("hidden"))) hone_network_status
hone_network_open_program(const hone_network_program* program, const char* weights_path,
                          int32_t device, hone_network** network) HONE_NETWORK_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HONE_CLIENT_NETWORK_RUNTIME_HONE_PROGRAM_H_ */
