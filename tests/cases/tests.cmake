flyover_test(cases
  ${CMAKE_CURRENT_LIST_DIR}/public_cases_test.cpp ${CMAKE_CURRENT_LIST_DIR}/training_cases_test.cpp)
