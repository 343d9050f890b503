find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(TARGET flyover_cli)
  add_test(NAME golden
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/golden.py
            --flyover $<TARGET_FILE:flyover_cli>)
  set_tests_properties(golden PROPERTIES TIMEOUT 300)
endif()
