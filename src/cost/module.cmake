flyover_module(cost
  HEADERS cost_model.hpp library.hpp nccl_tuner.hpp pattern.hpp protocol.hpp site_parameters.hpp
  SOURCES best.cpp cost_model.cpp group.cpp library.cpp link_classes.cpp mesh.cpp nccl_tuner.cpp pattern.cpp
    protocol.cpp settings.cpp site_parameters.cpp)
