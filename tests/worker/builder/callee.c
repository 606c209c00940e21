int callee_value(void) { return 41; }
