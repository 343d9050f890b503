flyover_test(io
  ${CMAKE_CURRENT_LIST_DIR}/document_test.cpp)
