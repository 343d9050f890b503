flyover_module(io
  HEADERS document.hpp embedded.hpp kernel_reader.hpp left_out.hpp library_reader.hpp measurement_reader.hpp model_reader.hpp nccl_tests_log.hpp params.hpp presets.hpp
          residuals_reader.hpp residuals_writer.hpp result_reader.hpp result_writer.hpp topology_reader.hpp topology_writer.hpp workload_reader.hpp
  SOURCES document.cpp embedded.cpp explicit_graph.cpp fitted.cpp hardware_reader.cpp hugging_face.cpp json.cpp kernel_reader.cpp
          left_out.cpp library_reader.cpp measurement_reader.cpp model_fields.cpp model_reader.cpp nccl_tests_log.cpp params.cpp presets.cpp residuals_reader.cpp
          residuals_writer.cpp result_reader.cpp result_writer.cpp topology_reader.cpp topology_svg.cpp topology_writer.cpp workload_reader.cpp)

include(${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake)
file(GLOB configs CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/configs/*.json ${PROJECT_SOURCE_DIR}/configs/hardware/*.json
  ${PROJECT_SOURCE_DIR}/configs/kernels/*.json
  ${PROJECT_SOURCE_DIR}/configs/libraries/*.json ${PROJECT_SOURCE_DIR}/configs/models/*.json
  ${PROJECT_SOURCE_DIR}/validation/*.json)
flyover_embed(flyover ${PROJECT_SOURCE_DIR}/configs ${configs})
