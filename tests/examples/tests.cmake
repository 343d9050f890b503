flyover_test(examples ${CMAKE_CURRENT_LIST_DIR}/examples_test.cpp)
target_link_libraries(flyover_examples_tests PRIVATE fmt::fmt)
