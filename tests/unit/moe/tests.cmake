flyover_test(moe
  ${CMAKE_CURRENT_LIST_DIR}/copies_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gate_sampler_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/placement_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/popularity_test.cpp)
