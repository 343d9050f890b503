flyover_test(report ${CMAKE_CURRENT_LIST_DIR}/table_test.cpp ${CMAKE_CURRENT_LIST_DIR}/range_test.cpp ${CMAKE_CURRENT_LIST_DIR}/summary_test.cpp)
