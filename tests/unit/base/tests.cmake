flyover_test(base
  ${CMAKE_CURRENT_LIST_DIR}/quantity_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/text_test.cpp)
