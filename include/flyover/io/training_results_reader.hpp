#pragma once

// Published training results as files (docs/formats/training-results.md): a list of records, or an
// object with "results"; and the shipped stacks and kernels to predict them with.

#include <filesystem>
#include <vector>

#include "flyover/io/document.hpp"
#include "flyover/study/training_job_of.hpp"
#include "flyover/study/training_record.hpp"

namespace flyover::io {

// Throws InputError, with the place, for what is missing or of the wrong kind. Members that it does
// not know are left alone: folders of others have their own. Where a shipped model has the record's
// name and sizes, what records do not tell (biases, norms, groups of experts) is taken from it.
[[nodiscard]] std::vector<TrainingRecord> read_training_results(const Document& document);

// All records of the *.json files in a folder and those below it, in order of path; measured
// kernels among them are passed over. Throws InputError when there is no such folder or nothing in
// it.
[[nodiscard]] std::vector<TrainingRecord> load_training_results(
    const std::filesystem::path& folder);

// Those of validation/training/, compiled in.
[[nodiscard]] std::vector<TrainingRecord> shipped_training_results();

// The shipped hardware, stacks and kernel models.
[[nodiscard]] TrainingCatalogue training_catalogue();

}  // namespace flyover::io
