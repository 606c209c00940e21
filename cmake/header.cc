// The source of the targets whose precompiled headers all others share: see cmake/hone.cmake.
int main() { return 0; }
