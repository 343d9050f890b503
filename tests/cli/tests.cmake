find_package(Python3 REQUIRED COMPONENTS Interpreter)

# One ctest per file; each holds the tests of one question.
foreach(name usage output bad_input bench calibrate topo run plan sweep compare validate training_validate list documents)
  add_test(NAME "cli: ${name}"
    COMMAND Python3::Interpreter -m unittest -q ${name}_test
    WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
  set_tests_properties("cli: ${name}" PROPERTIES
    TIMEOUT 300
    ENVIRONMENT "FLYOVER=$<TARGET_FILE:flyover_cli>;PYTHONDONTWRITEBYTECODE=1")
endforeach()

add_test(NAME "docs: the page of validation errors is up to date"
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/validation_table.py --check
          $<TARGET_FILE:flyover_cli>)

add_test(NAME "docs: the table of the node-limit question is up to date"
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/node_limit.py --check
          --flyover $<TARGET_FILE:flyover_cli>)

add_test(NAME "docs: the page of fitted parameters is up to date"
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/fit/parameters.py --check)

add_test(NAME "data: the residuals that ranges rest on are up to date"
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/residuals.py --check
          $<TARGET_FILE:flyover_cli>)

add_test(NAME "data: the residuals that margins of step times rest on are up to date"
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/training_residuals.py --check
          $<TARGET_FILE:flyover_cli>)

# Threads, processes, interruptions: with a made-up evaluation, so that there is time for many of them.
add_executable(flyover_sweep_driver ${PROJECT_SOURCE_DIR}/tests/support/sweep_driver.cpp)
target_link_libraries(flyover_sweep_driver PRIVATE flyover_mpi flyover_options fmt::fmt)
target_include_directories(flyover_sweep_driver PRIVATE ${PROJECT_SOURCE_DIR}/tests)
# Open MPI is not built for the thread sanitizer, which takes its locks for errors.
if(NOT FLYOVER_SANITIZE MATCHES "thread")
  set(mpirun ${FLYOVER_MPIRUN})
endif()
foreach(name sweep_database sweep_runs sweep_mpi)
  add_test(NAME "cli: ${name}"
    COMMAND Python3::Interpreter -m unittest -q ${name}_test
    WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
  set_tests_properties("cli: ${name}" PROPERTIES
    TIMEOUT 300
    ENVIRONMENT "SWEEP_DRIVER=$<TARGET_FILE:flyover_sweep_driver>;MPIRUN=${mpirun};PYTHONDONTWRITEBYTECODE=1")
endforeach()
