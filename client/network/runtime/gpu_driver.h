/* What a network needs of a GPU's driver: cuda_driver.c and opencl_driver.c open CUDA and OpenCL at
 * run time, so that programs start without them. */
#ifndef HONE_CLIENT_NETWORK_RUNTIME_GPU_DRIVER_H_
#define HONE_CLIENT_NETWORK_RUNTIME_GPU_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

#include "client/network/runtime/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t HoneGpuMemory; /* a buffer of the device or a part of one; 0: none */
typedef struct HoneGpu HoneGpu;
typedef struct HoneGpuModule HoneGpuModule;
typedef struct HoneGpuQueue HoneGpuQueue;   /* commands that run one after the other */
typedef struct HoneGpuLaunch HoneGpuLaunch; /* a launch with its parameters */
typedef struct HoneGpuGraph HoneGpuGraph;   /* recorded commands */

typedef struct HoneGpuLimits {
  char device[129];      /* its name, in printable ASCII */
  uint64_t part_bytes;   /* parts of buffers begin at multiples of it */
  uint64_t threads;      /* of a block, in all */
  uint64_t block[3];     /* threads of a block in each dimension */
  uint64_t grid[3];      /* blocks of a launch in each dimension */
  uint64_t shared_bytes; /* of a block */
} HoneGpuLimits;

typedef struct HoneGpuDriver {
  /* Opens a device, and tells its limits. Functions that free something accept null, but not for
   * the device. */
  hone_network_status (*open)(int32_t device, HoneGpu** gpu, HoneGpuLimits* limits);
  void (*close)(HoneGpu* gpu);
  /* Around all other functions: the calling thread uses the device. */
  void (*enter)(HoneGpu* gpu);
  void (*leave)(HoneGpu* gpu);

  hone_network_status (*allocate)(HoneGpu* gpu, uint64_t bytes, HoneGpuMemory* memory);
  void (*free)(HoneGpu* gpu, HoneGpuMemory memory);
  hone_network_status (*part)(HoneGpu* gpu, HoneGpuMemory buffer, uint64_t offset, uint64_t bytes,
                              HoneGpuMemory* part);
  void (*free_part)(HoneGpu* gpu, HoneGpuMemory part);

  hone_network_status (*load)(HoneGpu* gpu, const hone_network* network,
                              const HonePlanKernel* kernel, HoneGpuModule** module);
  void (*unload)(HoneGpu* gpu, HoneGpuModule* module);
  hone_network_status (*new_launch)(HoneGpu* gpu, HoneGpuModule* module,
                                    const hone_network* network, const HonePlanLaunch* launch,
                                    const HoneGpuMemory* parameters, uint32_t count,
                                    HoneGpuLaunch** made);
  void (*free_launch)(HoneGpu* gpu, HoneGpuLaunch* launch);

  /* A queue for runs of at most this many steps. */
  hone_network_status (*new_queue)(HoneGpu* gpu, uint32_t steps, HoneGpuQueue** queue);
  void (*free_queue)(HoneGpuQueue* queue);
  /* Whether the commands of the next run tell their times. */
  void (*start)(HoneGpuQueue* queue, int timed);
  /* The commands that follow belong to this step. That behind the last one ends it. */
  hone_network_status (*begin_step)(HoneGpuQueue* queue, uint32_t step);
  /* The host's memory must remain as it is until the queue has finished. */
  hone_network_status (*write)(HoneGpuQueue* queue, HoneGpuMemory to, const void* from,
                               uint64_t bytes);
  hone_network_status (*read)(HoneGpuQueue* queue, HoneGpuMemory from, void* to, uint64_t bytes);
  hone_network_status (*copy)(HoneGpuQueue* queue, HoneGpuMemory from, HoneGpuMemory to,
                              uint64_t bytes);
  hone_network_status (*launch)(HoneGpuQueue* queue, HoneGpuLaunch* launch);
  /* Waits for all commands. If they were timed, writes the nanoseconds of these steps; 0: the
   * driver does not tell. `step_ns` may be null. */
  hone_network_status (*finish)(HoneGpuQueue* queue, uint32_t steps, int64_t* step_ns);
  /* Records the commands between `begin_graph` and `end_graph` in place of running them, so that
   * `run_graph` runs them at once. Null: the driver cannot. Neither failure is an error: the first
   * one returns 0, and the second one null. */
  int (*begin_graph)(HoneGpuQueue* queue);
  HoneGpuGraph* (*end_graph)(HoneGpuQueue* queue);
  hone_network_status (*run_graph)(HoneGpuQueue* queue, HoneGpuGraph* graph);
  void (*free_graph)(HoneGpu* gpu, HoneGpuGraph* graph);
} HoneGpuDriver;

extern const HoneGpuDriver hone_cuda_driver, hone_opencl_driver;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HONE_CLIENT_NETWORK_RUNTIME_GPU_DRIVER_H_ */
