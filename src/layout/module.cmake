flyover_module(layout
  HEADERS expand.hpp group_kind.hpp kernel_model.hpp kernel_time.hpp layout.hpp memory.hpp model.hpp rank_parameters.hpp schedule.hpp stack.hpp step_parts.hpp step_estimate.hpp message_times.hpp training_options.hpp
  SOURCES activations.cpp expand.cpp expand_passes.cpp expand_units.cpp program_writer.cpp group_kind.cpp kernel_model.cpp kernel_time.cpp layout.cpp memory.cpp model.cpp rank_parameters.cpp schedule.cpp states.cpp message_times.cpp layer_work.cpp work_writer.cpp ffn_work.cpp expert_work.cpp attention_work.cpp kernel_sum.cpp step_estimate.cpp step_parts.cpp)
