# Installation: headers, library, program, a CMake package (find_package(attn)) and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/attn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS attn EXPORT attn-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT attn-targets NAMESPACE attn:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attn)
if(TARGET attn_cli)
  install(TARGETS attn_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/attn-config.cmake.in ${CMAKE_BINARY_DIR}/attn-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attn)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/attn-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(${CMAKE_CURRENT_LIST_DIR}/attn.pc.in ${CMAKE_BINARY_DIR}/attn.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/attn-config.cmake ${CMAKE_BINARY_DIR}/attn-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attn)
install(FILES ${CMAKE_BINARY_DIR}/attn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
