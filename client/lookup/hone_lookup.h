/* Finds tuned kernels at run time, in a folder that `hone export -o FOLDER` has written.
 *
 *   hone_lookup* lookup;
 *   const hone_lookup_kernel* kernel;
 *   if (hone_lookup_open("kernels", &lookup) != HONE_LOOKUP_OK) fail(hone_lookup_error());
 *   if (hone_lookup_find(lookup, "matmul m=1024 n=1024 k=1024", 0, &kernel) == HONE_LOOKUP_OK)
 *     ... hone_lookup_run(kernel, buffers, packed, workspace, &runtime) ...
 *   else
 *     ... the application's own implementation ...
 *   hone_lookup_close(lookup);
 *
 * The library needs no server, and no library except the C and C++ standard libraries. It has
 * threads for programs that do not provide their own (hone_lookup_threads). It neither throws nor
 * prints. It ends the program if it cannot allocate memory for its own tables.
 *
 * Kernels are code: use only folders that no one else can write. */
#ifndef HONE_LOOKUP_H_
#define HONE_LOOKUP_H_

#include <stdint.h>

#ifdef __cplusplus
#define HONE_LOOKUP_NOEXCEPT noexcept
extern "C" {
#else
#define HONE_LOOKUP_NOEXCEPT
#endif

typedef enum hone_lookup_status {
  HONE_LOOKUP_OK = 0,
  HONE_LOOKUP_NOT_FOUND = 1,       /* the folder has no kernel for the workload */
  HONE_LOOKUP_UNSUPPORTED_CPU = 2, /* it has one, but this CPU lacks instructions that it uses */
  HONE_LOOKUP_BAD_FOLDER = 3,      /* no index, a damaged one, or one of another version */
  HONE_LOOKUP_BAD_KERNEL = 4,      /* a kernel's file is missing, damaged or cannot be loaded */
  HONE_LOOKUP_INVALID_ARGUMENT = 5,
  HONE_LOOKUP_OUT_OF_MEMORY = 6
} hone_lookup_status;

#ifndef HONE_RUNTIME
#define HONE_RUNTIME
/* The threads that a kernel may use. parallel_for calls body(context, begin, end, thread) for parts
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

/* Values that hone_lookup_run and `prepack` of a kernel return. */
#ifndef HONE_KERNEL_OK
#define HONE_KERNEL_OK 0
#define HONE_KERNEL_UNSUPPORTED_CPU 1   /* the CPU lacks a feature that the code uses */
#define HONE_KERNEL_MISALIGNED_BUFFER 2 /* a pointer is null or not aligned */
#endif
#ifndef HONE_KERNEL_OVERLAP
#define HONE_KERNEL_OVERLAP 3 /* an output overlaps another buffer */
#endif

/* Alignment in bytes of every buffer, the packed constants and the workspace. */
#define HONE_LOOKUP_ALIGNMENT 64

/* An opened folder. Functions with the same folder may be called by several threads at a time,
 * except hone_lookup_close. */
typedef struct hone_lookup hone_lookup;

/* An input or output of a kernel: dense and row-major, at least `bytes` long. */
typedef struct hone_lookup_buffer {
  const char* name;    /* of the tensor in the workload, such as "A" */
  const char* dtype;   /* "f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64", "bool", "f8e4m3",
                        * "f8e5m2", or "i4" and "u4": two elements per byte, low bits first */
  int32_t is_output;   /* 1: written by the kernel */
  int32_t is_constant; /* 1: an input that may be packed once, such as weights; see prepack */
  int32_t rank;
  const int64_t* shape; /* `rank` extents in elements, outermost first */
  int64_t bytes;
} hone_lookup_buffer;

/* A kernel for this CPU. It and everything that it points to belong to the folder and are valid
 * until hone_lookup_close. Later versions may add fields at the end. */
typedef struct hone_lookup_kernel {
  /* Packs constant inputs into `packed`, once before hone_lookup_run, on the calling thread. It
   * reads constants only; the other pointers may be null. hone_lookup_run reads the packed form of
   * these constants. It may read other constants, too: see is_used. */
  int32_t (*prepack)(void* const* buffers, void* packed);
  int64_t packed_bytes;
  int32_t buffer_count;
  const hone_lookup_buffer* buffers; /* inputs first, then outputs */
  const char* workload;              /* digest of the workload, 32 hex digits */
  const char* target;                /* key of the target that it was tuned for */
  double tolerance;                  /* relative error that was allowed; 0: strict */
  double latency_ns;                 /* measured on that target, in nanoseconds */
  double gflops;                     /* GFLOP/s there */
  /* For each buffer, 0 if hone_lookup_run does not use it: it is a constant that was packed, its
   * memory may be freed, and its pointer may be null. (For kernels that were built by an old
   * version, 1 for all buffers.) */
  const int32_t* is_used;
} hone_lookup_kernel;

/* Opens a folder and reads its index. The program may change its working directory afterwards, even
 * if the path is relative. The next hone_lookup_open sees later exports into the folder.
 * BAD_FOLDER, INVALID_ARGUMENT (a null pointer or an empty path): *lookup is set to null. */
hone_lookup_status hone_lookup_open(const char* folder, hone_lookup** lookup) HONE_LOOKUP_NOEXCEPT;

/* Finds the best kernel of a workload that this CPU can run. `workload` is one of
 *   - an operator with its keys in any order, as on the command line of hone; keys with default
 *     values may be left out: "conv2d n=1 h=56 w=56 ci=64 co=64 k=3 p=1";
 *   - the name that a kernel was given with `hone export --name`;
 *   - the name of its workload file: "my-net" or, as a C identifier, "my_net" for nets/my-net.hone
 *     (a name with blanks only as a C identifier);
 *   - the digest of a workload, 32 hex digits.
 * Kernels are considered if they were tuned with at most this tolerance; 0 finds only strict ones.
 * A kernel for more CPU features is better than one for fewer; among equals the latency decides.
 *
 * The first call that finds a kernel loads it, which takes about a millisecond. Further calls take
 * about a microsecond. NOT_FOUND, UNSUPPORTED_CPU, BAD_KERNEL, INVALID_ARGUMENT (a null pointer or
 * a word that is not of the form key=value): *kernel is set to null. */
hone_lookup_status hone_lookup_find(hone_lookup* lookup, const char* workload, double tolerance,
                                    const hone_lookup_kernel** kernel) HONE_LOOKUP_NOEXCEPT;

/* The same for the smallest value of one key, such as "m", that is not smaller than that of
 * `workload`, of the kernels with equal other keys; sets *value to it. For programs whose sizes
 * vary: they pad their buffers to it, which must be right for the operator, such as more rows of a
 * matmul. `hone export` of an operator with several sizes says whether it is, and writes a library
 * that pads by itself. Looks through all kernels of the folder. INVALID_ARGUMENT: also if the
 * workload has no such key, or its value is not a number. */
hone_lookup_status hone_lookup_find_size(hone_lookup* lookup, const char* workload, const char* key,
                                         double tolerance, const hone_lookup_kernel** kernel,
                                         int64_t* value) HONE_LOOKUP_NOEXCEPT;

/* Bytes of workspace for hone_lookup_run with a runtime of this many threads; 0: it may be null. */
int64_t hone_lookup_workspace_bytes(const hone_lookup_kernel* kernel,
                                    int32_t threads) HONE_LOOKUP_NOEXCEPT;

/* Computes the outputs and returns HONE_KERNEL_OK or another of the values above. `buffers` has
 * buffer_count pointers; outputs overlap no other buffer. `packed` may be null if packed_bytes is
 * 0. Without a runtime, the kernel uses one thread. Calls with different outputs and workspaces may
 * run at the same time. */
int32_t hone_lookup_run(const hone_lookup_kernel* kernel, void* const* buffers, const void* packed,
                        void* workspace, const HoneRuntime* runtime) HONE_LOOKUP_NOEXCEPT;

/* A runtime with this many threads, of which one is the calling thread. 0: as many as
 * OMP_NUM_THREADS says, or else as there are CPUs that the process may use (its affinity and the
 * quotas of its control groups). The other threads sleep while nothing runs. Any number of threads
 * may run kernels with it at the same time; a child process of fork may, too. */
HoneRuntime hone_lookup_threads(int32_t threads) HONE_LOOKUP_NOEXCEPT;

/* Packs the constants and runs the kernel once, with hone_lookup_threads(0), in memory that is
 * allocated for this call. Programs that call a kernel often use prepack and hone_lookup_run, and
 * keep the memory. INVALID_ARGUMENT: a buffer is null or not aligned to HONE_LOOKUP_ALIGNMENT, or
 * an output overlaps another buffer. OUT_OF_MEMORY: the outputs are unchanged. */
hone_lookup_status hone_lookup_call(const hone_lookup_kernel* kernel,
                                    void* const* buffers) HONE_LOOKUP_NOEXCEPT;

/* Unloads the kernels and frees the folder. None of its kernels may be running. Null is allowed. */
void hone_lookup_close(hone_lookup* lookup) HONE_LOOKUP_NOEXCEPT;

/* A message about the last status other than OK on this thread: what went wrong, where, and what to
 * do. Valid until the next call of this library on this thread. */
const char* hone_lookup_error(void) HONE_LOOKUP_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* HONE_LOOKUP_H_ */
