flyover_test(scenario
  ${CMAKE_CURRENT_LIST_DIR}/laws_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/references_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/chunks_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/replay_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/order_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/crossovers_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/mscclpp_test.cpp)
