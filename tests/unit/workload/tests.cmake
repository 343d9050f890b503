flyover_test(workload
  ${CMAKE_CURRENT_LIST_DIR}/collective_op_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/operation_graph_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/repetition_test.cpp)
