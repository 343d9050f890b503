flyover_test(cases ${CMAKE_CURRENT_LIST_DIR}/public_cases_test.cpp)
