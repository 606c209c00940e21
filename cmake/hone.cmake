# Build rules. Every CMakeLists.txt in the tree is a list of calls to them.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

option(HONE_BUILD_TESTS "Build the tests and benchmarks" ON)
option(HONE_WERROR "Warnings are errors" OFF)
option(HONE_WORKER_ONLY "Only hone-worker and hone-runner, with static libraries (deploy/bundle-worker.sh)" OFF)
set(HONE_PACKAGES "" CACHE PATH "With HONE_WORKER_ONLY: the folder that deploy/board-packages.sh has filled")
option(HONE_FUZZ "libFuzzer programs of the targets in tests/fuzz (needs clang)" OFF)
set(HONE_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize= (address,undefined)")

find_program(HONE_CCACHE ccache)
if(HONE_CCACHE)
  # ccache needs this sloppiness to cache compilations that use a precompiled header. With the base folder, source
  # paths are relative, so that checkouts share the cache.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
               ${HONE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
# The gRPC and LLVM programs link much faster with mold than with the default linker.
find_program(HONE_MOLD mold)
if(HONE_MOLD AND NOT HONE_WORKER_ONLY)  # a cross compiler does not find it
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(-pthread -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports uninitialized reads in Abseil's InlinedVector that do not exist.
  add_compile_options(-Wno-maybe-uninitialized -Wno-uninitialized)
  # GCC collects garbage whenever the heap has doubled, which also visits the whole precompiled header. With 1 GiB
  # before the first collection, most sources never collect, which saves up to a tenth of their time.
  add_compile_options(--param=ggc-min-heapsize=1048576)
endif()
if(HONE_WERROR)
  add_compile_options(-Werror)
endif()
if(HONE_SANITIZE)
  add_compile_options(-fsanitize=${HONE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HONE_SANITIZE})
endif()
if(HONE_SANITIZE STREQUAL "thread")
  # Tells the sanitizer about Abseil's locks, see tests/tsan/locks.cc.
  foreach(symbol N4absl7debian35Mutex4LockEv N4absl7debian35Mutex6UnlockEv N4absl7debian35Mutex10ReaderLockEv
                 N4absl7debian35Mutex12ReaderUnlockEv
                 N4absl7debian35Mutex5AwaitERKNS0_9ConditionE
                 N4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE
                 N4absl7debian312Notification6NotifyEv NK4absl7debian312Notification19WaitForNotificationEv
                 NK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE
                 N4absl7debian315BlockingCounter14DecrementCountEv N4absl7debian315BlockingCounter4WaitEv)
    add_link_options(-Wl,--wrap=_Z${symbol})
  endforeach()
  set(HONE_PROGRAM_SOURCES ${PROJECT_SOURCE_DIR}/tests/tsan/locks.cc)
endif()
if(HONE_FUZZ)
  # All libraries have coverage; only the fuzz programs link libFuzzer's main (tests/fuzz).
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# The precompiled header contains the headers that most sources include, which take half of the time of a typical
# compilation. It contains only headers of packages, so that a change of our own headers never rebuilds everything.
# Sources must still include the headers that they use.
set(HONE_COMMON_HEADERS <algorithm> <cstdint> <functional> <map> <memory> <optional> <set> <string> <utility> <vector>
    <absl/container/flat_hash_map.h> <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>
    <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/synchronization/mutex.h> <absl/time/time.h>)

# hone_compile_for_programs(TARGET): the objects of the library are linked into programs alone. Compiled like programs,
# they share a precompiled header, and their functions can be inlined, which -fPIC forbids.
function(hone_compile_for_programs TARGET)
  set_target_properties(${TARGET} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${TARGET} PRIVATE -fPIE)
endfunction()

# hone_precompile(TARGET SHARED KIND HEADERS …): TARGET uses the precompiled header of the target SHARED, which the first
# call creates. KIND is PRODUCT or TEST, because they are compiled with different flags. Clang is left out: it refuses a
# precompiled header if a target defines further macros.
function(hone_precompile TARGET SHARED KIND)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(NOT TARGET ${SHARED})
    # CONFIGURE does not touch a file whose content is unchanged.
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/header.cc CONTENT "int main() { return 0; }\n")
    add_library(${SHARED} OBJECT ${CMAKE_BINARY_DIR}/header.cc)
    hone_compile_for_programs(${SHARED})
    if(KIND STREQUAL "TEST")
      target_link_libraries(${SHARED} PRIVATE GTest::gmock GTest::gtest)
      target_compile_options(${SHARED} PRIVATE ${HONE_TEST_OPTIONS})
    endif()
    target_precompile_headers(${SHARED} PRIVATE ${HONE_COMMON_HEADERS} ${ARGN})
  endif()
  target_precompile_headers(${TARGET} REUSE_FROM ${SHARED})
  # GCC 12 reports warnings inside a precompiled std::string (its bug 105329).
  target_compile_options(${TARGET} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endfunction()

# GCC compiles tests in two thirds of the time with -Og. The code under test is in the libraries, which have the flags of the
# preset.
set(HONE_TEST_OPTIONS $<$<CONFIG:Release>:-Og>)

# hone_compile_quickly(): for folders whose code mostly waits for other processes. GCC compiles it with -O1 in three quarters
# of the time that -O2 takes. Bundles for boards are compiled for size.
macro(hone_compile_quickly)
  if(NOT HONE_WORKER_ONLY)
    add_compile_options($<$<CONFIG:Release>:-O1>)
  endif()
endmacro()

# hone_library(NAME SRCS a.cc … HDRS a.h … DEPS x …): a static library. NAME is folder_file, as in base_hash. Registries
# are plain tables (see CONTRIBUTING.md), so nothing needs whole-archive linking. Eight sources are compiled at a time,
# because headers and templates take most of the time of a single source, even with a precompiled header
# (tests/bench/results/build_time.md). Names in the unnamed namespaces of a library must therefore differ.
function(hone_library NAME)
  cmake_parse_arguments(ARG "" "" "SRCS;HDRS;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(hone_${NAME} STATIC ${ARG_SRCS} ${ARG_HDRS})
    list(LENGTH ARG_SRCS sources)
    if(sources GREATER 1)
      set_target_properties(hone_${NAME} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    endif()
    target_include_directories(hone_${NAME} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(hone_${NAME} PUBLIC ${ARG_DEPS})
    hone_compile_for_programs(hone_${NAME})
    hone_precompile(hone_${NAME} hone_header PRODUCT)
  else()
    add_library(hone_${NAME} INTERFACE)
    target_include_directories(hone_${NAME} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(hone_${NAME} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# hone_program(NAME SRCS … DEPS …): an executable in <build>/bin.
function(hone_program NAME)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${NAME} ${ARG_SRCS} ${HONE_PROGRAM_SOURCES})
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS})
  hone_precompile(${NAME} hone_header PRODUCT)
endfunction()

# The end of a test program's output if it skipped all of its tests, which ctest then reports as skipped.
set(HONE_ALL_SKIPPED "\\[  PASSED  \\] 0 tests\\.\n\\[  SKIPPED \\] [0-9]+ tests?, listed below:\n(\\[  SKIPPED \\] [^\n]*\n)+$")

# hone_test(NAME SRCS … DEPS … LABELS unit …): a GoogleTest program with one ctest entry. It runs in the source root;
# HONE_BIN_DIR is the folder of the programs, BIN or <build>/bin. SHARDS n makes n entries that share the tests, so that
# `ctest -j` can spread a long test over the cores. Six sources are compiled at a time, or one if SEPARATE is given, for
# sources that use the same names.
function(hone_test NAME)
  cmake_parse_arguments(ARG "SEPARATE" "BIN;TIMEOUT;SHARDS" "SRCS;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 900)
  endif()
  if(NOT ARG_BIN)
    set(ARG_BIN ${CMAKE_BINARY_DIR}/bin)
  endif()
  add_executable(${NAME} ${ARG_SRCS} ${HONE_PROGRAM_SOURCES})
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_options(${NAME} PRIVATE ${HONE_TEST_OPTIONS})
  hone_precompile(${NAME} hone_test_header TEST <filesystem> <gmock/gmock.h> <gtest/gtest.h>)
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  list(LENGTH ARG_SRCS sources)
  if(sources GREATER 1 AND NOT ARG_SEPARATE)
    set_target_properties(${NAME} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(entry ${NAME})
    if(ARG_SHARDS GREATER 1)
      math(EXPR number "${shard} + 1")
      set(entry ${NAME}_${number})
    endif()
    add_test(NAME ${entry} COMMAND ${NAME} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${entry} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} SKIP_REGULAR_EXPRESSION "${HONE_ALL_SKIPPED}"
      ENVIRONMENT "HONE_BIN_DIR=${ARG_BIN};GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
