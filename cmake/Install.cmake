# `cmake --install`: the library with its headers, its CMake package, the program and the shipped inputs.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/flyover)
install(TARGETS flyover EXPORT flyoverTargets FILE_SET HEADERS)
install(EXPORT flyoverTargets NAMESPACE flyover:: DESTINATION ${package_dir})
configure_package_config_file(cmake/flyoverConfig.cmake.in flyoverConfig.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change an interface.
write_basic_package_version_file(flyoverConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/flyoverConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/flyoverConfigVersion.cmake
  cmake/FindMuParserX.cmake
  DESTINATION ${package_dir})

if(TARGET flyover_cli)
  install(TARGETS flyover_cli)
endif()
install(DIRECTORY topologies workloads configs schemas
  DESTINATION ${CMAKE_INSTALL_DATADIR}/flyover OPTIONAL)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
