flyover_module(trace HEADERS record.hpp)
