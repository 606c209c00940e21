# What `cmake --install` and `cpack` install. Components: programs (the five programs, manual pages, completion, units of
# systemd) and lookup (libhone_lookup, its header and the header of kernels, for find_package(hone) and pkg-config).
include(GNUInstallDirs)

install(TARGETS hone_lookup_shared hone_lookup_static EXPORT hone COMPONENT lookup
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES client/lookup/hone_lookup.h common/target/hone_runtime.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT lookup)
set(HONE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/hone)
install(EXPORT hone NAMESPACE hone:: FILE hone-config.cmake DESTINATION ${HONE_PACKAGE_DIR} COMPONENT lookup)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hone-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/hone-config-version.cmake DESTINATION ${HONE_PACKAGE_DIR} COMPONENT lookup)
# Relative to the file, so that the folder may be moved.
string(REGEX REPLACE "[^/]+" ".." HONE_PC_PREFIX "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
set(HONE_PC_PREFIX "\${pcfiledir}/${HONE_PC_PREFIX}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/hone_lookup.pc @ONLY CONTENT
[[prefix=@HONE_PC_PREFIX@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: hone_lookup
Description: Finds kernels that Hone has tuned, at run time
Version: @PROJECT_VERSION@
Libs: -L${libdir} -lhone_lookup
Libs.private: -lstdc++ -ldl -pthread
Cflags: -I${includedir}
]])
install(FILES ${CMAKE_BINARY_DIR}/hone_lookup.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT lookup)

install(TARGETS hone hone-server hone-worker hone-builder hone-runner COMPONENT programs)
install(FILES deploy/systemd/hone-server.service deploy/systemd/hone-worker@.service
        DESTINATION lib/systemd/system COMPONENT programs)
# The programs know their own texts.
set(HONE_PAGES ${CMAKE_BINARY_DIR}/pages)
install(CODE "
  file(REMOVE_RECURSE \"${HONE_PAGES}\")
  file(MAKE_DIRECTORY \"${HONE_PAGES}/man1\")
  execute_process(COMMAND \"$<TARGET_FILE:hone>\" help --man \"${HONE_PAGES}/man1\" COMMAND_ERROR_IS_FATAL ANY)
  foreach(shell bash zsh fish)
    execute_process(COMMAND \"$<TARGET_FILE:hone>\" completion \${shell} OUTPUT_FILE \"${HONE_PAGES}/\${shell}\"
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()" COMPONENT programs)
install(DIRECTORY ${HONE_PAGES}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT programs)
install(FILES ${HONE_PAGES}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME hone
        COMPONENT programs)
install(FILES ${HONE_PAGES}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _hone COMPONENT programs)
install(FILES ${HONE_PAGES}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME hone.fish
        COMPONENT programs)

# Debian packages: cpack --config build/release/CPackConfig.cmake makes hone and libhone-lookup.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "the authors of Hone")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Finds fast kernels for tensor operators by measuring them")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL programs lookup)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME hone)
set(CPACK_DEBIAN_LOOKUP_PACKAGE_NAME libhone-lookup)
include(CPack)
