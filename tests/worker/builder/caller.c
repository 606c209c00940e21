// Calls a function of another object file.
int callee_value(void);
int caller_run(void) { return callee_value() + 1; }
