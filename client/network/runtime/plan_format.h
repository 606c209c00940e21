/* The bytes of a network's plan, which hone_network.c reads and client/network/plan/plan.cc writes.
 * All numbers are little-endian. The header is followed by the tensors, steps, kernels, launches,
 * pieces, checks, sizes, masks, code, buffers, inputs, outputs and texts, without gaps. Text is
 * given by its offset in the texts, and ends with a zero.
 *
 * A network with an open dimension has a part for each value of it, a size. All sizes share the
 * kernels, the weights and the arena, and there are lists of inputs and of outputs for each size.
 *
 * On a GPU, a kernel is its code and its launches. Constants are packed when the network is opened.
 * Each piece of the weights has its own buffer, because devices limit the size of a buffer. */
#ifndef HONE_CLIENT_NETWORK_RUNTIME_PLAN_FORMAT_H_
#define HONE_CLIENT_NETWORK_RUNTIME_PLAN_FORMAT_H_

#include <stdint.h>

#define HONE_PLAN_MAGIC "HONEPLAN"
#define HONE_PLAN_VERSION 5
#define HONE_WEIGHTS_MAGIC "HONEWGTS"
#define HONE_WEIGHTS_VERSION 1
#define HONE_PLAN_ALIGNMENT 64 /* of weights, tensors in the arena and packed constants */
#define HONE_PLAN_CODE_ALIGNMENT 8
#define HONE_PLAN_MAX_RANK 8
#define HONE_PLAN_MAX_THREADS (1 << 16)      /* of a block */
#define HONE_PLAN_MAX_SHARED_BYTES (1 << 30) /* of a block */
#define HONE_PLAN_COPY \
  UINT32_MAX /* the kernel of a step that copies its first tensor to its second */
#define HONE_PLAN_MAX_BYTES (UINT64_C(1) << 46) /* of the arena, the weights and each tensor */

typedef struct HonePlanHeader {
  char magic[8];
  uint32_t version;
  uint32_t tensors; /* counts */
  uint32_t steps;
  uint32_t packing; /* steps after these, which pack constants on a GPU */
  uint32_t kernels;
  uint32_t launches; /* of all kernels */
  uint32_t pieces;
  uint32_t buffers; /* of all steps */
  uint32_t inputs;  /* of each size */
  uint32_t outputs;
  uint32_t text_bytes;
  uint32_t checks; /* of all steps */
  uint32_t is_gpu;
  uint32_t sizes; /* 0: all shapes are fixed */
  uint32_t masks; /* of all sizes */
  uint32_t reserved;
  uint64_t code_bytes; /* a multiple of HONE_PLAN_CODE_ALIGNMENT */
  uint64_t arena_bytes;
  uint64_t weights_bytes; /* of the weights file, with its header */
  uint64_t absent_bytes;  /* of the largest tensor in HONE_PLACE_ABSENT */
  uint8_t id[16];         /* that of the weights file */
} HonePlanHeader;

enum {
  HONE_PLACE_INPUT = 0,   /* in the caller's buffer of input `number` */
  HONE_PLACE_OUTPUT = 1,  /* in the caller's buffer of output `number` */
  HONE_PLACE_WEIGHTS = 2, /* in the weights file */
  HONE_PLACE_ARENA = 3,   /* in the instance's arena */
  HONE_PLACE_ABSENT = 4,  /* what a kernel does not read, such as a constant that is packed */
  HONE_PLACES = 5
};

typedef struct HonePlanTensor {
  int64_t shape[HONE_PLAN_MAX_RANK];
  uint64_t bytes;
  uint64_t offset; /* from the start of its place, in bytes */
  uint32_t name;
  uint32_t dtype;
  uint32_t rank;
  uint32_t place;
  uint32_t number; /* of the input or output */
  uint32_t reserved;
} HonePlanTensor;

typedef struct HonePlanStep {
  uint64_t packed_offset; /* of the packed constants in the weights */
  uint32_t name;
  uint32_t kernel; /* or HONE_PLAN_COPY */
  uint32_t first_buffer;
  uint32_t buffers;
  uint32_t first_check; /* before the step runs */
  uint32_t checks;
} HonePlanStep;

/* The elements of a tensor of i32 or i64 at the position `column` of each row of `columns` elements
 * must be at least -extent and less than extent. */
typedef struct HonePlanCheck {
  int64_t extent;
  int64_t least; /* -extent, or 0 */
  uint32_t tensor;
  uint32_t element_bytes; /* 4 or 8 */
  uint32_t column;
  uint32_t columns;
} HonePlanCheck;

/* The part of a plan for one value of the open dimension, by ascending values. The tensors and the
 * steps of the sizes follow each other. */
typedef struct HonePlanSize {
  int64_t value;
  uint32_t name; /* of the dimension */
  uint32_t first_tensor;
  uint32_t tensors;
  uint32_t first_step;
  uint32_t steps;
  uint32_t pads; /* whether the values between the size before and this one are padded to it */
} HonePlanSize;

enum {
  HONE_MASK_NEEDS_NOTHING = 0,
  HONE_MASK_NEEDS_ONE = 1,
  HONE_MASK_NEEDS_FIRST = 2,
};

/* An input of a size that pads, of which each element hides or shows a sample. If the size pads,
 * the elements behind the samples must hide, and each row must show what is needed: one of the
 * samples that the caller gave, or the first one. */
typedef struct HonePlanMask {
  uint32_t size;  /* its number */
  uint32_t input; /* its number */
  uint32_t element_bytes;
  uint32_t is_float;
  uint8_t hides[8]; /* the first `element_bytes` bytes are such an element */
  uint8_t shows[2][8];
  uint32_t shown; /* elements in `shows`: 1 or 2 */
  uint32_t needs;
} HonePlanMask;

/* Code that a driver loads; a zero follows. */
typedef struct HonePlanCode {
  uint64_t offset; /* in the code */
  uint64_t bytes;
} HonePlanCode;

typedef struct HonePlanKernel {
  uint64_t packed_bytes;
  uint64_t workspace_bytes; /* on a GPU, as what follows the buffers */
  uint32_t name;
  uint32_t buffers;
  uint32_t first_launch;
  uint32_t launches;
  HonePlanCode code;     /* OpenCL C, or a cubin for the GPUs of one architecture */
  HonePlanCode portable; /* PTX for those of another one; may be empty */
} HonePlanKernel;

/* A launch of grid[d] blocks (work groups) of block[d] threads (work items) in each dimension. Its
 * parameters are pointers to the buffers of the step, the packed constants and the workspace. */
typedef struct HonePlanLaunch {
  uint64_t shared_bytes; /* of a block, in all */
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t name;    /* of the function */
  uint32_t prepack; /* whether it packs constants */
} HonePlanLaunch;

/* A part of the weights, by offset: a constant, or packed constants, which have offsets from the
 * end of the file on. */
typedef struct HonePlanPiece {
  uint64_t offset;
  uint64_t bytes;
  uint32_t only_for_packing;
  uint32_t reserved;
} HonePlanPiece;

/* The first bytes of the weights file. Its id is the XXH3-128 hash of the bytes after this header,
 * the high half first. */
typedef struct HoneWeightsHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  uint64_t bytes; /* of the file */
  uint8_t id[16];
  uint8_t padding[24];
} HoneWeightsHeader;

#endif /* HONE_CLIENT_NETWORK_RUNTIME_PLAN_FORMAT_H_ */
