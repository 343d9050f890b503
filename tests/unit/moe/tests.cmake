flyover_test(moe
  ${CMAKE_CURRENT_LIST_DIR}/copies_test.cpp)
