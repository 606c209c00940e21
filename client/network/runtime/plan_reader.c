#include "client/network/runtime/plan_reader.h"

#include <string.h>

/* Takes `count` elements from the start of the remaining bytes; null if there are fewer. */
static const void* Take(const char** at, const char* end, uint64_t count, uint64_t element_bytes) {
  const char* const begin = *at;
  if ((uint64_t)(end - begin) / element_bytes < count) return NULL;
  *at = begin + count * element_bytes;
  return begin;
}

const HonePlanPiece* hone_plan_piece(const HonePlan* plan, uint64_t offset, uint64_t bytes) {
  uint32_t begin = 0,
           end = plan->header->pieces; /* the last one that begins at the offset or before */
  while (end - begin > 1) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (plan->pieces[middle].offset <= offset) {
      begin = middle;
    } else {
      end = middle;
    }
  }
  const HonePlanPiece* const piece = &plan->pieces[begin];
  return begin < end && piece->offset <= offset && offset - piece->offset <= piece->bytes &&
                 bytes <= piece->bytes - (offset - piece->offset)
             ? piece
             : NULL;
}

static int InWeights(const HonePlan* plan, uint64_t offset, uint64_t bytes) {
  const uint64_t total = plan->header->weights_bytes;
  if (plan->header->is_gpu) return bytes == 0 || hone_plan_piece(plan, offset, bytes) != NULL;
  return offset % HONE_PLAN_ALIGNMENT == 0 && offset >= sizeof(HoneWeightsHeader) &&
         offset <= total && bytes <= total - offset;
}

static int IsInside(const HonePlanTensor* tensor, uint64_t bytes) {
  return tensor->offset % HONE_PLAN_ALIGNMENT == 0 && tensor->offset <= bytes &&
         tensor->bytes <= bytes - tensor->offset;
}

static const char* CheckTensor(const HonePlan* plan, const HonePlanTensor* tensor) {
  const HonePlanHeader* const header = plan->header;
  if (tensor->name >= header->text_bytes || tensor->dtype >= header->text_bytes)
    return "names no text";
  if (tensor->rank > HONE_PLAN_MAX_RANK) return "has a tensor of too many dimensions";
  if (tensor->bytes > HONE_PLAN_MAX_BYTES) return "has a tensor that is too large";
  switch (tensor->place) {
    case HONE_PLACE_INPUT:
      return tensor->number < header->inputs ? NULL
                                             : "has a tensor in an input that does not exist";
    case HONE_PLACE_OUTPUT:
      return tensor->number < header->outputs ? NULL
                                              : "has a tensor in an output that does not exist";
    case HONE_PLACE_WEIGHTS:
      return InWeights(plan, tensor->offset, tensor->bytes) ? NULL
                                                            : "has a tensor outside the weights";
    case HONE_PLACE_ARENA:
      return IsInside(tensor, header->arena_bytes) ? NULL : "has a tensor outside the arena";
    case HONE_PLACE_ABSENT:
      return tensor->bytes <= header->absent_bytes ? NULL
                                                   : "has an absent tensor that is too large";
    default:
      return "has a tensor in an unknown place";
  }
}

static int HasCode(const HonePlan* plan, const HonePlanCode* code) {
  const uint64_t total = plan->header->code_bytes;
  return code->offset % HONE_PLAN_CODE_ALIGNMENT == 0 && code->offset < total &&
         code->bytes < total - code->offset && plan->code[code->offset + code->bytes] == '\0';
}

static const char* CheckKernel(const HonePlan* plan, const HonePlanKernel* kernel) {
  const HonePlanHeader* const header = plan->header;
  if (kernel->name >= header->text_bytes) return "names no text";
  if (kernel->packed_bytes > HONE_PLAN_MAX_BYTES) return "has packed constants that are too large";
  if (!header->is_gpu) return NULL;
  if (kernel->workspace_bytes > HONE_PLAN_MAX_BYTES) return "has a workspace that is too large";
  if (!HasCode(plan, &kernel->code) ||
      (kernel->portable.bytes > 0 && !HasCode(plan, &kernel->portable))) {
    return "has a kernel without its code";
  }
  if (kernel->first_launch > header->launches ||
      kernel->launches > header->launches - kernel->first_launch) {
    return "has a kernel without its launches";
  }
  return NULL;
}

/* Some drivers count the threads of a dimension with 32 bits. */
static const char* CheckLaunch(const HonePlan* plan, const HonePlanLaunch* launch) {
  if (launch->name >= plan->header->text_bytes) return "names no text";
  if (launch->shared_bytes > HONE_PLAN_MAX_SHARED_BYTES)
    return "has a launch with too much shared memory";
  uint64_t threads = 1;
  for (int d = 0; d < 3; ++d) {
    const uint64_t grid = launch->grid[d], block = launch->block[d];
    if (grid == 0 || block == 0) return "has a launch without threads";
    if (block > HONE_PLAN_MAX_THREADS || (threads *= block) > HONE_PLAN_MAX_THREADS ||
        grid * block > UINT32_MAX) {
      return "has a launch of too many threads";
    }
  }
  return NULL;
}

/* Checks that pieces lie behind each other, each in the file or, if packed, behind it. */
static const char* CheckPieces(const HonePlan* plan) {
  const uint64_t file = plan->header->weights_bytes;
  uint64_t end = sizeof(HoneWeightsHeader);
  for (uint32_t p = 0; p < plan->header->pieces; ++p) {
    const HonePlanPiece* const piece = &plan->pieces[p];
    if (piece->offset < end || piece->offset > 2 * HONE_PLAN_MAX_BYTES || piece->bytes == 0 ||
        piece->bytes > HONE_PLAN_MAX_BYTES ||
        (piece->offset < file && piece->bytes > file - piece->offset)) {
      return "has a piece outside the weights";
    }
    end = piece->offset + piece->bytes;
  }
  return NULL;
}

static const char* CheckChecks(const HonePlan* plan, const HonePlanStep* step) {
  if (step->first_check > plan->header->checks ||
      step->checks > plan->header->checks - step->first_check) {
    return "has a step without its checks";
  }
  for (uint32_t c = 0; c < step->checks; ++c) {
    const HonePlanCheck* const check = &plan->checks[step->first_check + c];
    if (check->tensor >= plan->header->tensors) return "checks an unknown tensor";
    const HonePlanTensor* const tensor = &plan->tensors[check->tensor];
    if ((check->element_bytes != 4 && check->element_bytes != 8) ||
        tensor->bytes % check->element_bytes != 0 || tensor->place == HONE_PLACE_ABSENT ||
        check->column >= check->columns || check->extent < 0 ||
        check->extent > (int64_t)HONE_PLAN_MAX_BYTES ||
        (check->least != 0 && check->least != -check->extent)) {
      return "has a check that is not possible";
    }
  }
  return NULL;
}

/* Whether the device has these weights while steps run, or, if `packs`, while it packs. */
static int AreKept(const HonePlan* plan, uint64_t offset, uint64_t bytes, int packs) {
  if (!InWeights(plan, offset, bytes)) return 0;
  return packs || !plan->header->is_gpu || bytes == 0 ||
         !hone_plan_piece(plan, offset, bytes)->only_for_packing;
}

/* Checks that the buffer of a step is there: only packing reads constants that are only packed, and
 * it has no other buffers. */
static const char* CheckBuffer(const HonePlan* plan, uint32_t number, int packs) {
  if (number >= plan->header->tensors) return "has a step with an unknown tensor";
  const HonePlanTensor* const tensor = &plan->tensors[number];
  if (tensor->place == HONE_PLACE_WEIGHTS) {
    return AreKept(plan, tensor->offset, tensor->bytes, packs)
               ? NULL
               : "has a step that reads a constant which is there only for packing";
  }
  return packs && tensor->place != HONE_PLACE_ABSENT ? "packs what is not constant" : NULL;
}

/* `packs`: it is a step that packs constants on a GPU. */
static const char* CheckStep(const HonePlan* plan, const HonePlanStep* step, int packs) {
  const HonePlanHeader* const header = plan->header;
  if (step->name >= header->text_bytes) return "names no text";
  const char* const wrong = CheckChecks(plan, step);
  if (wrong != NULL) return wrong;
  if (step->first_buffer > header->buffers ||
      step->buffers > header->buffers - step->first_buffer) {
    return "has a step without its buffers";
  }
  const uint32_t* const buffers = plan->buffers + step->first_buffer;
  for (uint32_t b = 0; b < step->buffers; ++b) {
    const char* const missing = CheckBuffer(plan, buffers[b], packs);
    if (missing != NULL) return missing;
  }
  if (step->kernel == HONE_PLAN_COPY) {
    if (step->buffers != 2) return "has a copy that is not of one tensor to another";
    const HonePlanTensor* const from = &plan->tensors[buffers[0]];
    const HonePlanTensor* const to = &plan->tensors[buffers[1]];
    if (from->bytes != to->bytes || from->place == HONE_PLACE_ABSENT)
      return "has a copy that is not possible";
    return to->place == HONE_PLACE_OUTPUT || to->place == HONE_PLACE_ARENA
               ? NULL
               : "copies to a tensor that is constant";
  }
  if (step->kernel >= header->kernels) return "has a step with an unknown kernel";
  const HonePlanKernel* const kernel = &plan->kernels[step->kernel];
  if (step->buffers != kernel->buffers)
    return "has a step with another number of buffers than its kernel";
  if (kernel->packed_bytes > 0 &&
      !AreKept(plan, step->packed_offset, kernel->packed_bytes, packs)) {
    return "has packed constants outside the weights";
  }
  return NULL;
}

uint32_t hone_plan_parts(const HonePlan* plan) {
  return plan->header->sizes > 0 ? plan->header->sizes : 1;
}

HonePlanSize hone_plan_part(const HonePlan* plan, uint32_t number) {
  if (plan->header->sizes > 0) return plan->sizes[number];
  const HonePlanSize whole = {
      .value = 0, .tensors = plan->header->tensors, .steps = plan->header->steps};
  return whole;
}

static int IsTensorOf(const HonePlanSize* part, uint32_t tensor) {
  return tensor >= part->first_tensor && tensor - part->first_tensor < part->tensors;
}

/* Checks that input or output i is a tensor at the start of the caller's buffer i. */
static const char* CheckEnds(const HonePlan* plan, const HonePlanSize* part,
                             const uint32_t* tensors, uint32_t count, uint32_t place) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!IsTensorOf(part, tensors[i])) return "has an unknown input or output";
    const HonePlanTensor* const tensor = &plan->tensors[tensors[i]];
    if (tensor->place != place || tensor->number != i || tensor->offset != 0)
      return "has an input or output in another place";
  }
  return NULL;
}

/* Checks that tensors in the caller's buffers lie inside them. */
static const char* CheckShared(const HonePlan* plan, const HonePlanSize* part,
                               const uint32_t* inputs, const uint32_t* outputs) {
  for (uint32_t t = 0; t < part->tensors; ++t) {
    const HonePlanTensor* const tensor = &plan->tensors[part->first_tensor + t];
    const uint32_t* const ends = tensor->place == HONE_PLACE_INPUT    ? inputs
                                 : tensor->place == HONE_PLACE_OUTPUT ? outputs
                                                                      : NULL;
    if (ends != NULL && !IsInside(tensor, plan->tensors[ends[tensor->number]].bytes)) {
      return "has a tensor outside its input or output";
    }
  }
  return NULL;
}

/* Checks that a part uses no tensors of another one. */
static const char* CheckPart(const HonePlan* plan, uint32_t number) {
  const HonePlanHeader* const header = plan->header;
  const HonePlanSize part = hone_plan_part(plan, number);
  const uint32_t* const inputs = plan->inputs + (size_t)number * header->inputs;
  const uint32_t* const outputs = plan->outputs + (size_t)number * header->outputs;
  for (uint32_t s = 0; s < part.steps; ++s) {
    const HonePlanStep* const step = &plan->steps[part.first_step + s];
    int own = 1;
    for (uint32_t b = 0; b < step->buffers; ++b)
      own &= IsTensorOf(&part, plan->buffers[step->first_buffer + b]);
    for (uint32_t c = 0; c < step->checks; ++c)
      own &= IsTensorOf(&part, plan->checks[step->first_check + c].tensor);
    if (!own) return "has a step with a tensor of another size";
  }
  const char* wrong = CheckEnds(plan, &part, inputs, header->inputs, HONE_PLACE_INPUT);
  if (wrong == NULL)
    wrong = CheckEnds(plan, &part, outputs, header->outputs, HONE_PLACE_OUTPUT);
  return wrong != NULL ? wrong : CheckShared(plan, &part, inputs, outputs);
}

static const HonePlanTensor* EndOf(const HonePlan* plan, const uint32_t* ends, uint32_t count,
                                   uint32_t i, uint32_t part) {
  return &plan->tensors[ends[(size_t)part * count + i]];
}

int32_t hone_plan_open_axis(const HonePlan* plan, const uint32_t* ends, uint32_t count,
                            uint32_t i) {
  const HonePlanTensor* const first = EndOf(plan, ends, count, i, 0);
  int32_t axis = HONE_AXIS_NONE;
  for (uint32_t p = 1; p < hone_plan_parts(plan); ++p) {
    const HonePlanTensor* const other = EndOf(plan, ends, count, i, p);
    if (other->rank != first->rank) return HONE_AXIS_IRREGULAR;
    for (uint32_t d = 0; d < first->rank; ++d) {
      if (other->shape[d] == first->shape[d]) continue;
      if (axis != HONE_AXIS_NONE && axis != (int32_t)d) return HONE_AXIS_IRREGULAR;
      axis = (int32_t)d;
    }
  }
  if (axis == HONE_AXIS_NONE) return axis;
  for (uint32_t p = 0; p < hone_plan_parts(plan); ++p) {
    const HonePlanTensor* const each = EndOf(plan, ends, count, i, p);
    const int64_t value = plan->sizes[p].value, extent = each->shape[axis];
    uint64_t rows = 1; /* of which each has the elements after the axis */
    for (int32_t d = 0; d <= axis; ++d) {
      const int64_t most = (int64_t)HONE_PLAN_MAX_BYTES;
      if (each->shape[d] < 0 || (rows > 0 && each->shape[d] > most / (int64_t)rows))
        return HONE_AXIS_IRREGULAR;
      rows *= (uint64_t)each->shape[d];
    }
    if (extent < 1 || extent % value != 0 ||
        extent / value != first->shape[axis] / plan->sizes[0].value ||
        (rows == 0 ? each->bytes != 0 : each->bytes % rows != 0)) {
      return HONE_AXIS_IRREGULAR;
    }
  }
  return axis;
}

/* Checks that the sizes divide the tensors and the steps, and that those that pad can. */
static const char* CheckSizes(const HonePlan* plan) {
  const HonePlanHeader* const header = plan->header;
  uint64_t tensors = 0, steps = 0;
  int64_t before = 0;
  int pads = 0;
  if (header->sizes == 0) return NULL;
  for (uint32_t k = 0; k < header->sizes; ++k) {
    const HonePlanSize* const size = &plan->sizes[k];
    if (size->name >= header->text_bytes) return "names no text";
    if (size->value <= before || size->value > (int64_t)HONE_PLAN_MAX_BYTES)
      return "has sizes that do not ascend";
    if (size->first_tensor != tensors || size->first_step != steps)
      return "has a size without its steps";
    before = size->value;
    tensors += size->tensors;
    steps += size->steps;
    pads |= size->pads != 0;
  }
  if (tensors != header->tensors || steps != header->steps) return "has a size without its steps";
  return pads && header->sizes < 2 ? "pads to its only size" : NULL;
}

/* Checks the inputs and outputs of a plan with sizes that pad. */
static const char* CheckPadding(const HonePlan* plan) {
  const HonePlanHeader* const header = plan->header;
  int pads = 0, regular = 1;
  for (uint32_t k = 0; k < header->sizes; ++k) pads |= plan->sizes[k].pads != 0;
  if (!pads) return NULL;
  for (uint32_t i = 0; i < header->inputs; ++i)
    regular &= hone_plan_open_axis(plan, plan->inputs, header->inputs, i) != HONE_AXIS_IRREGULAR;
  for (uint32_t o = 0; o < header->outputs; ++o)
    regular &= hone_plan_open_axis(plan, plan->outputs, header->outputs, o) != HONE_AXIS_IRREGULAR;
  return regular ? NULL : "pads an input or output that does not grow with the size";
}

const HonePlanMask* hone_plan_mask(const HonePlan* plan, uint32_t number, uint32_t input) {
  for (uint32_t m = 0; m < plan->header->masks; ++m) {
    if (plan->masks[m].size == number && plan->masks[m].input == input) return &plan->masks[m];
  }
  return NULL;
}

/* Checks that masks are inputs that grow with the size, with one element for each sample of a row.
 */
static const char* CheckMasks(const HonePlan* plan) {
  const HonePlanHeader* const header = plan->header;
  for (uint32_t m = 0; m < header->masks; ++m) {
    const HonePlanMask* const mask = &plan->masks[m];
    if (mask->size >= header->sizes || mask->input >= header->inputs)
      return "has a mask of an unknown input";
    const int32_t axis =
        hone_plan_open_axis(plan, plan->inputs, header->inputs, mask->input);
    const HonePlanTensor* const tensor =
        EndOf(plan, plan->inputs, header->inputs, mask->input, mask->size);
    if (axis < 0 || tensor->shape[axis] != plan->sizes[mask->size].value)
      return "has a mask that does not grow with the size";
    uint64_t elements = 1;
    for (uint32_t d = 0; d < tensor->rank; ++d) {
      if (tensor->shape[d] < 1 || elements > HONE_PLAN_MAX_BYTES / (uint64_t)tensor->shape[d])
        return "has a mask without elements";
      elements *= (uint64_t)tensor->shape[d];
    }
    if (mask->shown < 1 || mask->shown > 2) return "has a mask that shows nothing";
    if (mask->needs > HONE_MASK_NEEDS_FIRST) return "has a mask with unknown needs";
    if (mask->element_bytes < 1 || mask->element_bytes > sizeof mask->hides ||
        elements * mask->element_bytes != tensor->bytes) {
      return "has a mask with elements of another type";
    }
  }
  return NULL;
}

const char* hone_plan_read(const void* bytes, uint64_t size, HonePlan* plan) {
  const char* at = bytes;
  const char* const end = at + size;
  const HonePlanHeader* const header = Take(&at, end, 1, sizeof(HonePlanHeader));
  if (header == NULL || memcmp(header->magic, HONE_PLAN_MAGIC, sizeof header->magic) != 0)
    return "is not a plan";
  if (header->version != HONE_PLAN_VERSION) return "has another version";
  if (header->arena_bytes > HONE_PLAN_MAX_BYTES || header->weights_bytes > HONE_PLAN_MAX_BYTES ||
      header->absent_bytes > HONE_PLAN_MAX_BYTES) {
    return "is too large";
  }
  plan->header = header;
  plan->tensors = Take(&at, end, header->tensors, sizeof(HonePlanTensor));
  plan->steps = Take(&at, end, (uint64_t)header->steps + header->packing, sizeof(HonePlanStep));
  plan->kernels = Take(&at, end, header->kernels, sizeof(HonePlanKernel));
  plan->launches = Take(&at, end, header->launches, sizeof(HonePlanLaunch));
  plan->pieces = Take(&at, end, header->pieces, sizeof(HonePlanPiece));
  plan->checks = Take(&at, end, header->checks, sizeof(HonePlanCheck));
  plan->sizes = Take(&at, end, header->sizes, sizeof(HonePlanSize));
  plan->masks = Take(&at, end, header->masks, sizeof(HonePlanMask));
  plan->code = Take(&at, end, header->code_bytes, 1);
  plan->buffers = Take(&at, end, header->buffers, sizeof(uint32_t));
  const uint64_t parts = hone_plan_parts(plan);
  plan->inputs = Take(&at, end, parts * header->inputs, sizeof(uint32_t));
  plan->outputs = Take(&at, end, parts * header->outputs, sizeof(uint32_t));
  plan->texts = Take(&at, end, header->text_bytes, 1);
  if (plan->tensors == NULL || plan->steps == NULL || plan->kernels == NULL ||
      plan->launches == NULL || plan->pieces == NULL || plan->checks == NULL ||
      plan->sizes == NULL || plan->masks == NULL || plan->code == NULL || plan->buffers == NULL || plan->inputs == NULL ||
      plan->outputs == NULL || plan->texts == NULL || at != end) {
    return "is truncated";
  }
  if (header->text_bytes == 0 || plan->texts[header->text_bytes - 1] != '\0')
    return "has texts without an end";
  if (header->code_bytes % HONE_PLAN_CODE_ALIGNMENT != 0) return "has code that is not aligned";
  const char* wrong = CheckPieces(plan);
  for (uint32_t t = 0; t < header->tensors && wrong == NULL; ++t)
    wrong = CheckTensor(plan, &plan->tensors[t]);
  for (uint32_t k = 0; k < header->kernels && wrong == NULL; ++k)
    wrong = CheckKernel(plan, &plan->kernels[k]);
  for (uint32_t l = 0; l < header->launches && wrong == NULL; ++l)
    wrong = CheckLaunch(plan, &plan->launches[l]);
  for (uint64_t s = 0; s < (uint64_t)header->steps + header->packing && wrong == NULL; ++s)
    wrong = CheckStep(plan, &plan->steps[s], s >= header->steps);
  if (wrong == NULL) wrong = CheckSizes(plan);
  for (uint32_t p = 0; p < parts && wrong == NULL; ++p) wrong = CheckPart(plan, p);
  if (wrong == NULL) wrong = CheckPadding(plan);
  return wrong != NULL ? wrong : CheckMasks(plan);
}

int64_t hone_plan_index(const HonePlanCheck* check, const void* elements, uint64_t position) {
  return check->element_bytes == 8 ? ((const int64_t*)elements)[position]
                                   : ((const int32_t*)elements)[position];
}

/* The range begins at 0 if `least` is subtracted: one comparison of unsigned numbers. */
static int IsWrong(const HonePlanCheck* check, int64_t index) {
  const uint64_t least = (uint64_t)check->least;
  return (uint64_t)index - least >= (uint64_t)check->extent - least;
}

int64_t hone_plan_wrong_index(const HonePlanCheck* check, const void* elements, uint64_t bytes) {
  const uint64_t count = bytes / check->element_bytes;
  const uint64_t least = (uint64_t)check->least, legal = (uint64_t)check->extent - least;
  int wrong = 0;
  /* Without an exit, so that the loops become vector code. */
  if (check->element_bytes == 8) {
    const int64_t* const indices = elements;
    for (uint64_t i = check->column; i < count; i += check->columns)
      wrong |= (uint64_t)indices[i] - least >= legal;
  } else {
    const int32_t* const indices = elements;
    for (uint64_t i = check->column; i < count; i += check->columns)
      wrong |= (uint64_t)(int64_t)indices[i] - least >= legal;
  }
  if (!wrong) return -1;
  uint64_t i = check->column;
  while (!IsWrong(check, hone_plan_index(check, elements, i))) i += check->columns;
  return (int64_t)i;
}
