#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/training_validation.hpp"
#include "cli/validation_output.hpp"
#include "flyover/base/error.hpp"
#include "flyover/io/left_out.hpp"
#include "flyover/io/library_reader.hpp"
#include "flyover/io/measurement_reader.hpp"
#include "flyover/io/residuals_reader.hpp"
#include "flyover/io/residuals_writer.hpp"
#include "flyover/study/residual_ranges.hpp"

namespace flyover::cli {

namespace {

// Predicts each record with the libraries as they were fitted without its site. A site that the fit
// does not know of has nothing to leave out.
Validation predict_left_out(const std::vector<Measurement>& records,
                            const std::vector<ValidatedSet>& sets,
                            const HardwareCatalogue& catalogue, SiteFit fit) {
  const io::LeftOut left_out;
  std::map<std::string, std::vector<std::size_t>> by_site;
  for (std::size_t i = 0; i < records.size(); ++i) by_site[records[i].site].push_back(i);
  Validation validation;
  validation.sets.resize(records.size());
  HardwareCatalogue without = catalogue;
  for (const auto& [site, indices] : by_site) {
    std::vector<Measurement> of_site;
    for (const std::size_t i : indices) {
      of_site.push_back(records[i]);
      const std::string& library = sets[i].library;
      if (left_out.knows(site) && !library.empty()) {
        without.libraries[library] = left_out.library(library, site);
      }
    }
    std::vector<ValidatedSet> predicted = predict(of_site, without, fit);
    for (std::size_t k = 0; k < indices.size(); ++k) {
      const std::string& library = sets[indices[k]].library;
      if (!library.empty()) without.libraries[library] = catalogue.libraries.at(library);
      validation.sets[indices[k]] = std::move(predicted[k]);
    }
  }
  validation.summary = summarise_validation(validation.sets);
  return validation;
}

// All shipped sets, each as well predicted as one that the fit has not seen.
std::vector<ValidatedSet> unseen(const ValidationReport& report,
                                 const std::vector<Measurement>& shipped,
                                 const HardwareCatalogue& catalogue) {
  const Validation& best = report.left_out ? *report.left_out : report.shipped;
  if (best.sets.size() == shipped.size()) return best.sets;  // Nothing was left out by --only.
  const std::vector<ValidatedSet> all = predict(shipped, catalogue);
  return report.left_out ? predict_left_out(shipped, all, catalogue, SiteFit::None).sets : all;
}

class Validate final : public Command {
 public:
  void add_options(CLI::App& app) override {
    CLI::Option* data =
        app.add_option("--data", folder_,
                       "Measurements in the shared format; default: the shipped ones")
            ->type_name("DIR");
    training_option_ =
        app.add_option("--training", training_,
                       "Training results instead: those of a folder in the shared format, or the "
                       "shipped ones")
            ->type_name("[DIR]")
            ->expected(0, 1);
    app.add_option("--only", only_, "Only sets or results whose id contains this text")
        ->type_name("TEXT");
    CLI::Option* library =
        app.add_option(
               "--library", libraries_,
               "Library files to use instead of the shipped ones of the same name and version")
            ->type_name("FILE");
    app.add_option("--json", json_, "Write every row and the summary")->type_name("FILE");
    CLI::Option* residuals =
        app.add_option("--residuals", residuals_,
                       "Write how far these measurements are from predictions, by class")
            ->type_name("FILE");
    training_option_->excludes(data)->excludes(library)->excludes(residuals);
  }

  void run(const Terminal& terminal) override {
    OutputFiles files;
    files.claim("--json", json_);
    files.claim("--residuals", residuals_);
    if (training_option_->count() > 0) {
      run_training(terminal, files);
    } else {
      run_measurements(terminal, files);
    }
    files.commit();
  }

 private:
  void run_training(const Terminal& terminal, OutputFiles& files) const {
    const TrainingReport report = validate_training(training_, only_);
    files.put("--json", [&] { return training_json(report); });
    if (!terminal.quiet && !files.uses_standard_output()) {
      print(training_text(report, terminal.width));
    }
  }

  void run_measurements(const Terminal& terminal, OutputFiles& files) const {
    HardwareCatalogue catalogue = io::hardware_catalogue();
    for (const std::string& file : libraries_) {
      Library library = io::read_library(io::library_document(file));
      const std::string name = fmt::format("{}-{}", library.name, library.version);
      catalogue.libraries[name] = std::move(library);
    }
    const std::vector<Measurement> shipped =
        folder_.empty() ? io::shipped_measurements() : std::vector<Measurement>();
    std::vector<Measurement> records = folder_.empty() ? shipped : io::load_measurements(folder_);
    if (!only_.empty()) {
      std::erase_if(records,
                    [&](const Measurement& m) { return m.id.find(only_) == std::string::npos; });
      if (records.empty()) {
        throw InputError(fmt::format("--only: no measurement's id contains \"{}\"", only_));
      }
    }
    ValidationReport report;
    report.shipped.sets = predict(records, catalogue);
    if (libraries_.empty()) {
      report.left_out = predict_left_out(records, report.shipped.sets, catalogue, SiteFit::None);
      report.calibrated =
          predict_left_out(records, report.shipped.sets, catalogue, SiteFit::ThreeRows);
    }
    std::vector<ValidatedSet>& sets = report.shipped.sets;
    if (!folder_.empty()) {
      apply_ranges(sets, io::shipped_ranges());
      if (report.left_out) apply_ranges(report.left_out->sets, io::shipped_ranges());
    } else {
      const std::vector<ValidatedSet> from = unseen(report, shipped, catalogue);
      apply_left_out_ranges(sets, from);
      if (report.left_out) apply_left_out_ranges(report.left_out->sets, from);
    }
    if (report.left_out) report.left_out->summary = summarise_validation(report.left_out->sets);
    report.shipped.summary = summarise_validation(sets);

    files.put("--json", [&] { return validation_json(report); });
    files.put("--residuals", [&] {
      return io::residuals_json(
          report.left_out ? collect_residuals(report.left_out->sets, ResidualOrigin::LeftOut)
                          : collect_residuals(sets, ResidualOrigin::InSample));
    });
    if (!terminal.quiet && !files.uses_standard_output()) {
      print(validation_text(report, terminal.width));
    }
  }

  std::string folder_;
  std::string training_;
  CLI::Option* training_option_ = nullptr;
  std::string only_;
  std::vector<std::string> libraries_;
  std::string json_;
  std::string residuals_;
};

}  // namespace

std::unique_ptr<Command> make_validate() {
  return std::make_unique<Validate>();
}

}  // namespace flyover::cli
