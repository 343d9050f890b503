flyover_module(study
  HEADERS adaptive.hpp calibrate.hpp cluster_cost.hpp group_links.hpp layout_space.hpp measured_cluster.hpp measurement.hpp plan.hpp
          point_runner.hpp residual_ranges.hpp run_range.hpp statistics.hpp step_error.hpp step_replay.hpp sweep.hpp sweep_analysis.hpp sweep_config.hpp sweep_space.hpp training_job_of.hpp training_record.hpp training_validation.hpp validate.hpp
  SOURCES adaptive.cpp calibrate.cpp cluster_cost.cpp expression.cpp group_links.cpp layout_space.cpp measured_cluster.cpp measurement.cpp node_of.cpp plan.cpp point_runner.cpp recorded_cluster.cpp recorded_layout.cpp
          residual_ranges.cpp run_range.cpp statistics.cpp step_error.cpp step_replay.cpp sweep.cpp sweep_analysis.cpp sweep_config.cpp sweep_progress.cpp sweep_space.cpp training_job_of.cpp training_validation.cpp validate.cpp words.cpp)
