flyover_module(io
  HEADERS document.hpp embedded.hpp expert_kernels_reader.hpp expert_load_reader.hpp expert_words.hpp kernel_reader.hpp left_out.hpp library_reader.hpp measurement_reader.hpp model_reader.hpp nccl_tests_log.hpp params.hpp presets.hpp price_reader.hpp
          residuals_reader.hpp residuals_writer.hpp result_reader.hpp result_writer.hpp stack_reader.hpp step_error_reader.hpp sweep_evaluator.hpp sweep_export.hpp sweep_reader.hpp sweep_store.hpp timeline_writer.hpp topology_reader.hpp topology_writer.hpp training_reader.hpp training_step.hpp training_left_out.hpp training_results_reader.hpp workload_reader.hpp
  SOURCES beside.cpp document.cpp embedded.cpp exchange_reader.cpp expert_kernels_reader.cpp expert_load_reader.cpp expert_words.cpp explicit_graph.cpp file_lock.cpp fitted.cpp hardware_reader.cpp hugging_face.cpp json.cpp kernel_reader.cpp layered_config.cpp
          left_out.cpp library_reader.cpp measurement_reader.cpp model_fields.cpp model_reader.cpp nccl_tests_log.cpp params.cpp presets.cpp price_reader.cpp rank_groups.cpp residuals_reader.cpp
          residuals_writer.cpp result_reader.cpp result_writer.cpp rule_fields.cpp stack_reader.cpp step_error_reader.cpp sqlite.cpp sweep_evaluator.cpp sweep_export.cpp sweep_setups.cpp sweep_axis.cpp sweep_reader.cpp sweep_schema.cpp sweep_store.cpp timeline_writer.cpp topology_reader.cpp topology_svg.cpp topology_writer.cpp training_fields.cpp training_reader.cpp training_step.cpp training_left_out.cpp training_results_reader.cpp workload_reader.cpp)

include(${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake)
file(GLOB configs CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/configs/*.json ${PROJECT_SOURCE_DIR}/configs/hardware/*.json
  ${PROJECT_SOURCE_DIR}/configs/kernels/*.json
  ${PROJECT_SOURCE_DIR}/configs/libraries/*.json ${PROJECT_SOURCE_DIR}/configs/models/*.json
  ${PROJECT_SOURCE_DIR}/configs/moe/*.json
  ${PROJECT_SOURCE_DIR}/configs/stacks/*.json
  ${PROJECT_SOURCE_DIR}/validation/*.json ${PROJECT_SOURCE_DIR}/validation/training/*.json)
flyover_embed(flyover ${PROJECT_SOURCE_DIR}/configs ${configs})
