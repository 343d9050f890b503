flyover_test(moe
  ${CMAKE_CURRENT_LIST_DIR}/../../support/chunked_dispatch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/chunks_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/copies_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/deepep_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/fused_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/limits_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/speed_test.cpp)
