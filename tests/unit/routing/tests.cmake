flyover_test(routing
  ${CMAKE_CURRENT_LIST_DIR}/affinity_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/fabric_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/inside_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/laws_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rail_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/route_laws.cpp
  ${CMAKE_CURRENT_LIST_DIR}/../../support/topologies.cpp)
