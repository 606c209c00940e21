/* clang-format off */
/* A network that Hone has exported. C99 or C++11.
 *
 *   hone_network* network;
 *   if (hone_network_open("hone_network.weights", &network) != HONE_NETWORK_OK)
 *     fail(hone_network_error());
 *
 *   HoneRuntime runtime = hone_network_threads(0);  (or your own threads)
 *   hone_network_instance* instance;
 *   if (hone_network_new_instance(network, &runtime, &instance) != HONE_NETWORK_OK)
 *     fail(hone_network_error());
 *
 *   const void* inputs[] = {x};
 *   void* outputs[] = {y};
 *   if (hone_network_run(instance, inputs, outputs) != HONE_NETWORK_OK)
 *     fail(hone_network_error());
 *
 *   hone_network_free_instance(instance);
 *   hone_network_close(network);
 */
/* clang-format on */
#ifndef HONE_NETWORK_H_
#define HONE_NETWORK_H_

#include <stdint.h>

#ifdef __cplusplus
#define HONE_NETWORK_NOEXCEPT noexcept
extern "C" {
#else
#define HONE_NETWORK_NOEXCEPT
#endif

#ifndef HONE_RUNTIME
#define HONE_RUNTIME
/* The threads that kernels may use. parallel_for calls body(context, begin, end, thread) for parts
 * that cover [0, extent), each iteration once, and returns when all parts have ended. At most
 * `threads` parts run at the same time, each with another thread number from 0 to threads - 1.
 * Kernels were measured with parts that begin at thread * extent / threads if chunk is 0, and
 * otherwise with parts of `chunk` iterations that threads fetch when they are free. */
typedef struct HoneRuntime HoneRuntime;
struct HoneRuntime {
  void (*parallel_for)(const HoneRuntime* runtime, int64_t extent, int64_t chunk, int32_t threads,
                       void (*body)(void* context, int64_t begin, int64_t end, int64_t thread),
                       void* context);
  int32_t threads; /* the number of threads, at least 1 */
};
#endif

/* Buffers with this alignment in bytes are used in place on a CPU. Others are copied. */
#define HONE_NETWORK_ALIGNMENT 64

typedef enum hone_network_status {
  HONE_NETWORK_OK = 0,
  HONE_NETWORK_INVALID_ARGUMENT = 1, /* a null pointer, buffers that overlap, an index that is out
                                        of range (in a Gather or Scatter), or a size that the
                                        network does not run */
  HONE_NETWORK_NOT_FOUND = 2,        /* the weights file does not exist or cannot be read */
  HONE_NETWORK_BAD_FILE = 3,         /* the file is truncated, or belongs to another network */
  HONE_NETWORK_UNSUPPORTED_CPU = 4,  /* a kernel uses instructions that this CPU does not have, or
                                        tile registers (AMX) that Linux refuses */
  HONE_NETWORK_OUT_OF_MEMORY = 5,
  HONE_NETWORK_INTERNAL = 6, /* a kernel failed */
  HONE_NETWORK_DEVICE = 7    /* a GPU's driver is missing, has no such GPU, refuses a kernel, or
                                failed; after a failure in a run, open the network anew */
} hone_network_status;

/* An input or output: dense and row-major. */
typedef struct hone_network_tensor {
  const char* name;
  const char* dtype; /* "f32", "f16", "bf16", "f64", "i8", "u8", "i32", "i64", "bool" */
  int32_t rank;
  const int64_t* shape;
  int64_t bytes;
  int32_t open_axis; /* the dimension that grows with the size, in proportion, as the bytes do; -1
                        if none does, or the shape depends on the size in another way */
} hone_network_tensor;

typedef struct hone_network hone_network;
typedef struct hone_network_instance hone_network_instance;

/* Reads the weights file into memory, and checks that it belongs to this network and that the CPU
 * can run every kernel, or, for a network of a GPU, copies the weights to the GPU. The network is
 * immutable: any number of threads may use it. On failure *network is null. */
hone_network_status hone_network_open(const char* weights_path,
                                      hone_network** network) HONE_NETWORK_NOEXCEPT;

/* The same for a network of a GPU on the GPU with this number: that of CUDA, or for OpenCL that of
 * hone's device names ("opencl:1"). -1: the number in the environment variable HONE_DEVICE, or else
 * 0. A CPU has no numbers. */
hone_network_status hone_network_open_on(const char* weights_path, int32_t device,
                                         hone_network** network) HONE_NETWORK_NOEXCEPT;

/* Checks that the weights are those of the export. A GPU's were checked when they were copied to
 * it, and open fails if they are not. BAD_FILE: they are not. */
hone_network_status hone_network_verify(const hone_network* network) HONE_NETWORK_NOEXCEPT;

/* Frees a network. Its instances must have been freed. Null is allowed. */
void hone_network_close(hone_network* network) HONE_NETWORK_NOEXCEPT;

int32_t hone_network_input_count(const hone_network* network) HONE_NETWORK_NOEXCEPT;
int32_t hone_network_output_count(const hone_network* network) HONE_NETWORK_NOEXCEPT;
const hone_network_tensor* hone_network_inputs(const hone_network* network) HONE_NETWORK_NOEXCEPT;
const hone_network_tensor* hone_network_outputs(const hone_network* network) HONE_NETWORK_NOEXCEPT;

/* A network may leave a dimension open, such as the batch. Its sizes are the values for which it
 * was exported, in ascending order. A network whose shapes are fixed has none. Inputs, outputs,
 * steps and functions that do not name a size are those of the largest one. */
int32_t hone_network_size_count(const hone_network* network) HONE_NETWORK_NOEXCEPT;
const int64_t* hone_network_sizes(const hone_network* network) HONE_NETWORK_NOEXCEPT;
/* The name of the open dimension; "" if there is none. */
const char* hone_network_size_name(const hone_network* network) HONE_NETWORK_NOEXCEPT;
/* The number of the size that runs this value: of the value itself, or of the next larger one, to
 * which the inputs are padded if no sample of the network depends on those behind it.
 * INVALID_ARGUMENT: there is none; the message lists the values. */
hone_network_status hone_network_find_size(const hone_network* network, int64_t value,
                                           int32_t* number) HONE_NETWORK_NOEXCEPT;
/* The inputs and outputs of the size with this number. */
const hone_network_tensor* hone_network_inputs_of(const hone_network* network,
                                                  int32_t number) HONE_NETWORK_NOEXCEPT;
const hone_network_tensor* hone_network_outputs_of(const hone_network* network,
                                                   int32_t number) HONE_NETWORK_NOEXCEPT;

/* The steps of a run, each a kernel or a copy. */
int32_t hone_network_step_count(const hone_network* network) HONE_NETWORK_NOEXCEPT;
const char* hone_network_step_name(const hone_network* network, int32_t step) HONE_NETWORK_NOEXCEPT;
const char* hone_network_step_kernel(const hone_network* network,
                                     int32_t step) HONE_NETWORK_NOEXCEPT;

/* Makes the memory for one run at a time. Instances are independent: several threads may run at
 * once, each with its own. `runtime` must outlive the instance; null: everything runs on the
 * calling thread. GPUs need none. Two instances that run at the same time may share it if its
 * parallel_for allows that. */
hone_network_status hone_network_new_instance(
    const hone_network* network, const HoneRuntime* runtime,
    hone_network_instance** instance) HONE_NETWORK_NOEXCEPT;
void hone_network_free_instance(hone_network_instance* instance) HONE_NETWORK_NOEXCEPT;

/* Bytes that an instance has allocated, on the GPU if the network is of one. */
int64_t hone_network_instance_bytes(const hone_network_instance* instance) HONE_NETWORK_NOEXCEPT;

/* Computes the outputs. Allocates nothing and takes no lock. Outputs overlap neither inputs nor
 * each other. After a failure, their content is undefined. A GPU's driver may allocate and lock,
 * and indices that the network computes on a GPU are clamped, not checked. `inputs` may be NULL if
 * the network has none. */
hone_network_status hone_network_run(hone_network_instance* instance, const void* const* inputs,
                                     void* const* outputs) HONE_NETWORK_NOEXCEPT;

/* The same for this value of the open dimension. The buffers have the bytes of their tensors for
 * this value. Errors also as for hone_network_find_size. INVALID_ARGUMENT: the value is padded, and
 * a row of an input that hides positions hides all, or, beside a causal mask, the first one; the
 * message names the row. */
hone_network_status hone_network_run_size(hone_network_instance* instance, int64_t value,
                                          const void* const* inputs,
                                          void* const* outputs) HONE_NETWORK_NOEXCEPT;

/* The same as hone_network_run, and writes the nanoseconds of each step. On a GPU, such a run takes
 * longer. */
hone_network_status hone_network_profile(hone_network_instance* instance, const void* const* inputs,
                                         void* const* outputs,
                                         int64_t* step_ns) HONE_NETWORK_NOEXCEPT;

/* A runtime with this many threads, of which one is the calling thread. 0: as many as
 * OMP_NUM_THREADS says, or else as there are CPUs that the process may use (its affinity and the
 * quotas of its control groups). All networks of this library share the other threads, which sleep
 * while nothing runs. Any number of threads may run instances with it at the same time; a child
 * process of fork may, too. */
HoneRuntime hone_network_threads(int32_t threads) HONE_NETWORK_NOEXCEPT;

/* A message about the last status other than OK on this thread. Valid until the next call on this
 * thread. */
const char* hone_network_error(void) HONE_NETWORK_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HONE_NETWORK_H_ */
