flyover_test(collective
  ${CMAKE_CURRENT_LIST_DIR}/algorithms_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/check_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/collective_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/fold_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/laws_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/summary_test.cpp)
