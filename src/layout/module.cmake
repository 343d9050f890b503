flyover_module(layout
  HEADERS kernel_model.hpp kernel_time.hpp layout.hpp memory.hpp model.hpp schedule.hpp training_options.hpp
  SOURCES kernel_model.cpp kernel_time.cpp layout.cpp memory.cpp model.cpp schedule.cpp)
