#ifndef HONE_CLIENT_NETWORK_RUNTIME_PLAN_READER_H_
#define HONE_CLIENT_NETWORK_RUNTIME_PLAN_READER_H_

#include <stdint.h>

#include "client/network/runtime/plan_format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The parts of a plan: views of its bytes. */
typedef struct HonePlan {
  const HonePlanHeader* header;
  const HonePlanTensor* tensors;
  const HonePlanStep* steps;
  const HonePlanKernel* kernels;
  const HonePlanLaunch* launches;
  const HonePlanPiece* pieces;
  const HonePlanCheck* checks;
  const HonePlanSize* sizes;
  const HonePlanMask* masks;
  const char* code;
  const uint32_t* buffers; /* tensors of all steps */
  const uint32_t* inputs;  /* tensors; those of each size follow each other */
  const uint32_t* outputs; /* tensors */
  const char* texts;
} HonePlan;

/* Reads a plan from arbitrary bytes, which are aligned to 8. Returns null if they are a plan: every
 * number is in range, every tensor lies inside its place, and every step has as many buffers as its
 * kernel. Otherwise returns a message that says what is wrong. */
const char* hone_plan_read(const void* bytes, uint64_t size, HonePlan* plan);

/* The number of lists of inputs and outputs: one for each size, or one if all shapes are fixed. */
uint32_t hone_plan_parts(const HonePlan* plan);
/* The part of a plan with this number; the whole plan if all shapes are fixed. */
HonePlanSize hone_plan_part(const HonePlan* plan, uint32_t number);

enum { HONE_AXIS_NONE = -1, HONE_AXIS_IRREGULAR = -2 };
/* The dimension of input or output `i` whose extent is a multiple of the size, the same one for all
 * sizes. HONE_AXIS_NONE: the shape is the same for all sizes. HONE_AXIS_IRREGULAR: it depends on
 * the size in another way. `ends`: plan->inputs or plan->outputs, of which each size has `count`.
 */
int32_t hone_plan_open_axis(const HonePlan* plan, const uint32_t* ends, uint32_t count, uint32_t i);

/* The mask of an input of the size with this number; null if the input is none. */
const HonePlanMask* hone_plan_mask(const HonePlan* plan, uint32_t number, uint32_t input);

/* The piece that has these bytes of the weights; null if none has. */
const HonePlanPiece* hone_plan_piece(const HonePlan* plan, uint64_t offset, uint64_t bytes);

/* The position of the first element that violates a check, in a tensor of this size; -1 if there is
 * none. */
int64_t hone_plan_wrong_index(const HonePlanCheck* check, const void* elements, uint64_t bytes);
/* An element of a tensor that is checked. */
int64_t hone_plan_index(const HonePlanCheck* check, const void* elements, uint64_t position);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HONE_CLIENT_NETWORK_RUNTIME_PLAN_READER_H_ */
