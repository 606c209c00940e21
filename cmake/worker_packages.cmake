# The packages of hone-worker and hone-runner alone, as static libraries from the folder HONE_PACKAGES that
# deploy/board-packages.sh has filled. The names of the targets are those of dependencies.cmake. The compilers of Protobuf
# and gRPC run on this machine.
if(NOT HONE_PACKAGES)
  message(FATAL_ERROR "HONE_WORKER_ONLY needs -DHONE_PACKAGES=DIR; deploy/bundle-worker.sh sets it")
endif()
find_package(Threads REQUIRED)

file(GLOB hone_package_libraries ${HONE_PACKAGES}/usr/lib/*-linux-*)
add_library(hone_packages INTERFACE)
target_include_directories(hone_packages SYSTEM INTERFACE ${HONE_PACKAGES}/usr/include)
file(GLOB hone_multiarch_include ${HONE_PACKAGES}/usr/include/*-linux-*)
if(hone_multiarch_include)  # OpenSSL's configuration
  target_include_directories(hone_packages SYSTEM INTERFACE ${hone_multiarch_include})
endif()

# All archives form one group, because they refer to each other; the linker takes only what is needed. Abseil's archives are
# named after its parts, not after its CMake targets.
file(GLOB absl RELATIVE ${hone_package_libraries} ${hone_package_libraries}/libabsl_*.a)
list(FILTER absl EXCLUDE REGEX "flags|_test_")
set(archives)
foreach(name grpc++ grpc gpr address_sorting re2 upb cares ssl crypto protobuf z xxhash seccomp)
  if(NOT EXISTS ${hone_package_libraries}/lib${name}.a)
    message(FATAL_ERROR "${hone_package_libraries}/lib${name}.a is missing; run deploy/board-packages.sh again")
  endif()
  list(APPEND archives ${hone_package_libraries}/lib${name}.a)
endforeach()
list(TRANSFORM absl PREPEND ${hone_package_libraries}/)
list(APPEND archives ${absl})
list(JOIN archives "," group)
target_link_libraries(hone_packages INTERFACE "$<LINK_GROUP:RESCAN,${group}>" Threads::Threads ${CMAKE_DL_LIBS})

foreach(name absl::cleanup absl::flat_hash_map absl::flat_hash_set absl::function_ref absl::inlined_vector absl::span
        absl::status absl::statusor absl::str_format absl::strings absl::synchronization absl::time
        OpenSSL::Crypto OpenSSL::SSL ZLIB::ZLIB protobuf::libprotobuf gRPC::grpc++ PkgConfig::xxhash PkgConfig::seccomp
        nlohmann_json::nlohmann_json CLI11::CLI11 spdlog::spdlog)
  add_library(${name} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(${name} INTERFACE hone_packages)
endforeach()
# The package of spdlog has no static library.
target_compile_definitions(spdlog::spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

foreach(program protoc grpc_cpp_plugin)
  find_program(hone_host_${program} ${program} REQUIRED)
endforeach()
add_executable(protobuf::protoc IMPORTED GLOBAL)
set_target_properties(protobuf::protoc PROPERTIES IMPORTED_LOCATION ${hone_host_protoc})
add_executable(gRPC::grpc_cpp_plugin IMPORTED GLOBAL)
set_target_properties(gRPC::grpc_cpp_plugin PROPERTIES IMPORTED_LOCATION ${hone_host_grpc_cpp_plugin})

# Keeps the programs small: unused sections are dropped.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections -s)
