# Installation: headers, library, program, a CMake package (find_package(attn)) and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/attn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# attn::diagnose is what attn/diagnose.h needs: the judge, and the reference it judges by.
set_target_properties(attn_diagnose PROPERTIES EXPORT_NAME diagnose)
set_target_properties(attn_reference PROPERTIES EXPORT_NAME reference)
install(TARGETS attn attn_diagnose attn_reference EXPORT attn-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS attn_c EXPORT attn-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT attn-targets NAMESPACE attn:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attn)
if(TARGET attn_cli)
  install(TARGETS attn_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

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
configure_file(${CMAKE_CURRENT_LIST_DIR}/attn.pc.in ${CMAKE_BINARY_DIR}/attn.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/attn-config.cmake ${CMAKE_BINARY_DIR}/attn-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attn)
install(FILES ${CMAKE_BINARY_DIR}/attn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
