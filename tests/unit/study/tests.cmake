if("io" IN_LIST FLYOVER_MODULES)
  flyover_test(study
    ${CMAKE_CURRENT_LIST_DIR}/cluster_cost_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/calibrate_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/expression_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/layout_space_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/measured_cluster_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/measurement_reader_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/plan_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/residual_ranges_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/run_range_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/stated_algorithms_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/statistics_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/step_error_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/sweep_analysis_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/sweep_space_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/training_results_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/validate_test.cpp)
endif()
if("io" IN_LIST FLYOVER_MODULES)
  flyover_test(sweep
    ${CMAKE_CURRENT_LIST_DIR}/adaptive_test.cpp ${CMAKE_CURRENT_LIST_DIR}/sweep_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/../io/sweep_store_test.cpp)
endif()
