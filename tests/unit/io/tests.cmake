flyover_test(io
  ${CMAKE_CURRENT_LIST_DIR}/document_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/topology_reader_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/topology_schema_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/topology_writer_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/workload_reader_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/workload_schema_test.cpp)
