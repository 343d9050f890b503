flyover_module(routing
  HEADERS load_map.hpp route.hpp router.hpp summit.hpp
  SOURCES affinity.cpp cluster.cpp digraph.cpp dimension_order.cpp fabric.cpp interior.cpp load_map.cpp
          network.cpp rail.cpp router.cpp shortest_paths.cpp summit.cpp)
