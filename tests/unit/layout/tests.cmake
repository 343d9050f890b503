flyover_test(layout
  ${CMAKE_CURRENT_LIST_DIR}/fused_chunk_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/group_kind_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/layout_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/memory_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/schedule_test.cpp)
# Shipped models are files, which io reads.
if("io" IN_LIST FLYOVER_MODULES)
  flyover_test(model ${CMAKE_CURRENT_LIST_DIR}/model_test.cpp)
  flyover_test(expand ${CMAKE_CURRENT_LIST_DIR}/expand_test.cpp ${CMAKE_CURRENT_LIST_DIR}/volume_test.cpp)
  flyover_test(step
    ${CMAKE_CURRENT_LIST_DIR}/kernel_sum_test.cpp ${CMAKE_CURRENT_LIST_DIR}/layer_work_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/message_times_test.cpp ${CMAKE_CURRENT_LIST_DIR}/step_estimate_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/step_parts_test.cpp ${PROJECT_SOURCE_DIR}/tests/support/topologies.cpp)
  flyover_test(stack
    ${CMAKE_CURRENT_LIST_DIR}/stack_reader_test.cpp ${CMAKE_CURRENT_LIST_DIR}/training_reader_test.cpp)
endif()
flyover_test(kernel ${CMAKE_CURRENT_LIST_DIR}/kernel_time_test.cpp)
if("io" IN_LIST FLYOVER_MODULES)
  target_sources(flyover_kernel_tests PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/kernel_data_test.cpp ${CMAKE_CURRENT_LIST_DIR}/kernel_reader_test.cpp)
endif()
if("io" IN_LIST FLYOVER_MODULES AND FLYOVER_BUILD_BENCH)
  add_test(NAME "docs: the table of kernel errors is up to date"
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/fit/kernels.py $<TARGET_FILE:flyover_kernel_times> --check)
  set_tests_properties("docs: the table of kernel errors is up to date" PROPERTIES SKIP_RETURN_CODE 77)
endif()
