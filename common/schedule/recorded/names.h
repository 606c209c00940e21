// What the names in the sources of hone_recorded_replay stand for. No guard: also taken up again
// after an #undef.
#define HONE_RECORDED
#define hone hone_recorded
#define int64_t ::hone_recorded::recorded::Number
