// The program whose precompiled header the tests share: see hone_test_header in cmake/hone.cmake.
int main() { return 0; }
