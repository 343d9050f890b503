flyover_module(engine
  HEADERS event_queue.hpp fluid.hpp
  SOURCES event_queue.cpp fluid.cpp)
