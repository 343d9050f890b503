flyover_test(simulate
  ${CMAKE_CURRENT_LIST_DIR}/colour_refinement_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/ledger_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/program_test.cpp)
