flyover_test(io
  ${CMAKE_CURRENT_LIST_DIR}/document_test.cpp
<<<<<<< HEAD
  ${CMAKE_CURRENT_LIST_DIR}/expert_kernels_test.cpp
=======
  ${CMAKE_CURRENT_LIST_DIR}/expert_load_test.cpp
>>>>>>> 85fd42cc9dd898b45ff555e213367211e20514ea
  ${CMAKE_CURRENT_LIST_DIR}/left_out_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/residuals_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/result_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/model_reader_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/nccl_tests_log_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/params_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/timeline_writer_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/topology_reader_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/training_results_schema_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/library_schema_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/topology_schema_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/topology_writer_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/workload_reader_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/workload_schema_test.cpp)
