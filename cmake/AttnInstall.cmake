# Installation: headers, libraries, program, a CMake package (find_package(attn)) and files for pkg-config. What runs is the
# component "runtime", what builds other programs "development".
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/attn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
# attn::diagnose is what attn/diagnose.h needs: the judge, and the reference it judges by. The static C library needs
# attn::explain as well, which has no public header.
foreach(room diagnose reference explain)
  set_target_properties(attn_${room} PROPERTIES EXPORT_NAME ${room})
endforeach()
install(TARGETS attn attn_diagnose attn_reference attn_explain attn_c_static EXPORT attn-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(TARGETS attn_shared attn_c EXPORT attn-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT runtime NAMELINK_COMPONENT development)
install(EXPORT attn-targets NAMESPACE attn:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attn COMPONENT development)
if(TARGET attn_cli)
  install(TARGETS attn_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
endif()

# The licence goes along, under the name that Debian looks for.
foreach(component runtime development)
  set(package attn)
  if(component STREQUAL development)
    set(package attn-dev)
  endif()
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} RENAME copyright
    COMPONENT ${component})
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/attn-config.cmake.in ${CMAKE_BINARY_DIR}/attn-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attn)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/attn-config-version.cmake COMPATIBILITY SameMinorVersion)

# The prefix may be another at installation (cmake --install --prefix), so attn.pc finds it from its own place. A
# directory that is absolute stays where it is.
set(ATTN_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" to_prefix ${to_prefix})
  set(ATTN_PC_PREFIX "\${pcfiledir}/${to_prefix}")
endif()
foreach(directory LIBDIR INCLUDEDIR)
  set(ATTN_PC_${directory} "\${prefix}/${CMAKE_INSTALL_${directory}}")
  if(IS_ABSOLUTE ${CMAKE_INSTALL_${directory}})
    set(ATTN_PC_${directory} ${CMAKE_INSTALL_${directory}})
  endif()
endforeach()
set(ATTN_PKG_CONFIG_FILES)
foreach(library attn attn_c)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${library}.pc.in ${CMAKE_BINARY_DIR}/${library}.pc @ONLY)
  list(APPEND ATTN_PKG_CONFIG_FILES ${CMAKE_BINARY_DIR}/${library}.pc)
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/attn-config.cmake ${CMAKE_BINARY_DIR}/attn-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attn COMPONENT development)
install(FILES ${ATTN_PKG_CONFIG_FILES} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
