# muParserX, which has no CMake package of its own: target MuParserX::MuParserX.
find_path(MuParserX_INCLUDE_DIR muparserx/mpParser.h)
find_library(MuParserX_LIBRARY muparserx)
if(MuParserX_INCLUDE_DIR)
  file(STRINGS ${MuParserX_INCLUDE_DIR}/muparserx/mpDefines.h MuParserX_VERSION
    REGEX "define MUP_PARSER_VERSION")
  string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" MuParserX_VERSION "${MuParserX_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MuParserX
  REQUIRED_VARS MuParserX_LIBRARY MuParserX_INCLUDE_DIR
  VERSION_VAR MuParserX_VERSION
  REASON_FAILURE_MESSAGE "Debian has it as libmuparserx-dev (scripts/bootstrap installs it)")
mark_as_advanced(MuParserX_LIBRARY MuParserX_INCLUDE_DIR)

if(MuParserX_FOUND AND NOT TARGET MuParserX::MuParserX)
  add_library(MuParserX::MuParserX UNKNOWN IMPORTED)
  set_target_properties(MuParserX::MuParserX PROPERTIES
    IMPORTED_LOCATION ${MuParserX_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${MuParserX_INCLUDE_DIR})
endif()
