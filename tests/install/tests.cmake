# Installs the build into a fresh folder and builds and runs a small project that finds it there.
if(NOT CMAKE_CROSSCOMPILING)
  add_test(NAME "install: another project finds, links and runs the installed package"
    COMMAND ${CMAKE_COMMAND}
      -DBUILD=${PROJECT_BINARY_DIR}
      -DCONSUMER=${CMAKE_CURRENT_LIST_DIR}/consumer
      -DWORK=${CMAKE_CURRENT_BINARY_DIR}/install
      -DGENERATOR=${CMAKE_GENERATOR}
      -DCXX=${CMAKE_CXX_COMPILER}
      -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
      -DSANITIZE=${FLYOVER_SANITIZE}
      -P ${CMAKE_CURRENT_LIST_DIR}/install_test.cmake)
  set_tests_properties("install: another project finds, links and runs the installed package"
    PROPERTIES TIMEOUT 300)
endif()
