flyover_test(engine
  ${CMAKE_CURRENT_LIST_DIR}/event_queue_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/fluid_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/fluid_reference_test.cpp)
