if("io" IN_LIST FLYOVER_MODULES)
  flyover_test(cost
    ${CMAKE_CURRENT_LIST_DIR}/choice_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/ideal_laws_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/library_reader_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/library_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/measurements_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/point_to_point_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/settings_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/sharp_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/site_parameters_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/start_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tuner_test.cpp)
endif()
