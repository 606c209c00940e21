# What `cmake --install` and `cpack` install. Components: client (hone, manual pages, completion), server and worker (their
# programs and systemd units) and lookup (libhone_lookup, its header and the header of kernels, for find_package(hone) and pkg-config).
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

# The parts of a fleet, each with its systemd units.
install(TARGETS hone COMPONENT client)
install(TARGETS hone-server COMPONENT server)
install(PROGRAMS deploy/backup/hone-backup DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT server)
install(FILES deploy/systemd/hone-server.service deploy/backup/hone-backup.service deploy/backup/hone-backup.timer
        DESTINATION lib/systemd/system COMPONENT server)
install(FILES deploy/README.md deploy/monitoring/alerts.yml deploy/monitoring/dashboard.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/hone-server COMPONENT server)
install(FILES deploy/monitoring/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/hone-server RENAME monitoring.md COMPONENT server)
install(TARGETS hone-worker hone-builder hone-runner COMPONENT worker)
install(FILES deploy/systemd/hone-worker@.service DESTINATION lib/systemd/system COMPONENT worker)
install(FILES deploy/README.md deploy/board.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/hone-worker COMPONENT worker)
# The programs know their own texts.
set(HONE_PAGES ${CMAKE_BINARY_DIR}/pages)
install(CODE "
  file(REMOVE_RECURSE \"${HONE_PAGES}\")
  file(MAKE_DIRECTORY \"${HONE_PAGES}/man1\")
  execute_process(COMMAND \"$<TARGET_FILE:hone>\" help --man \"${HONE_PAGES}/man1\" COMMAND_ERROR_IS_FATAL ANY)
  foreach(shell bash zsh fish)
    execute_process(COMMAND \"$<TARGET_FILE:hone>\" completion \${shell} OUTPUT_FILE \"${HONE_PAGES}/\${shell}\"
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()" COMPONENT client)
install(DIRECTORY ${HONE_PAGES}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT client)
install(FILES ${HONE_PAGES}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME hone
        COMPONENT client)
install(FILES ${HONE_PAGES}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _hone COMPONENT client)
install(FILES ${HONE_PAGES}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME hone.fish
        COMPONENT client)

# Debian packages: cpack --config build/release/CPackConfig.cmake makes hone (the client), hone-server, hone-worker and
# libhone-lookup. The scripts of a package make the user that its unit names.
function(hone_unit_match UNIT PATTERN RESULT)
  file(READ deploy/systemd/${UNIT} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS deploy/systemd/${UNIT})
  if(NOT text MATCHES "${PATTERN}")
    message(FATAL_ERROR "deploy/systemd/${UNIT} does not contain ${PATTERN}")
  endif()
  set(${RESULT} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()
hone_unit_match(hone-server.service "\nUser=([a-z-]+)" HONE_SERVER_USER)
hone_unit_match(hone-worker@.service "\nUser=([a-z-]+)" HONE_WORKER_USER)
hone_unit_match(hone-worker@.service "(/etc/[a-z-]+)/%i\\.conf" HONE_WORKER_CONFIG_DIR)
set(HONE_DEBIAN ${CMAKE_BINARY_DIR}/debian)
foreach(part server worker)
  configure_file(deploy/debian/${part}.postinst.in ${HONE_DEBIAN}/${part}/postinst @ONLY)
endforeach()
set(HONE_UNITS "hone-backup.timer hone-server.service")
configure_file(deploy/debian/prerm.in ${HONE_DEBIAN}/server/prerm @ONLY)
set(HONE_UNITS "$(systemctl list-units --all --plain --no-legend 'hone-worker@*' | cut -d' ' -f1)")
configure_file(deploy/debian/prerm.in ${HONE_DEBIAN}/worker/prerm @ONLY)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "the authors of Hone")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL client server worker lookup)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME hone)
set(CPACK_DEBIAN_SERVER_PACKAGE_NAME hone-server)
set(CPACK_DEBIAN_WORKER_PACKAGE_NAME hone-worker)
set(CPACK_DEBIAN_LOOKUP_PACKAGE_NAME libhone-lookup)
set(CPACK_COMPONENT_CLIENT_DESCRIPTION "Finds fast kernels for tensor operators by measuring them
 The command hone. With hone-server and hone-worker it also works without a server of a team.")
set(CPACK_COMPONENT_SERVER_DESCRIPTION "Server of Hone: keeps tuning jobs and records, and hands work to workers")
set(CPACK_COMPONENT_WORKER_DESCRIPTION "Worker of Hone: builds and measures kernels on a device of this machine")
set(CPACK_COMPONENT_LOOKUP_DESCRIPTION "Library of Hone that finds tuned kernels at run time")
# hone-backup calls hone. Without a server's address, hone starts a server and a worker of its own.
set(CPACK_DEBIAN_CLIENT_PACKAGE_RECOMMENDS "hone-server, hone-worker")
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "hone, passwd")
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS "postgresql-client, prometheus")
set(CPACK_DEBIAN_WORKER_PACKAGE_DEPENDS "passwd")
foreach(part SERVER WORKER)
  string(TOLOWER ${part} folder)
  set(CPACK_DEBIAN_${part}_PACKAGE_CONTROL_EXTRA
      "${HONE_DEBIAN}/${folder}/postinst;${HONE_DEBIAN}/${folder}/prerm;${PROJECT_SOURCE_DIR}/deploy/debian/postrm")
  set(CPACK_DEBIAN_${part}_PACKAGE_CONTROL_STRICT_PERMISSION ON)
endforeach()
include(CPack)
