#include "flyover/io/training_left_out.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flyover/base/error.hpp"
#include "flyover/io/embedded.hpp"
#include "flyover/io/stack_reader.hpp"

namespace flyover::io {

namespace {

using Tree = nlohmann::ordered_json;

constexpr std::string_view shipped_path = "training-left-out.json";
constexpr std::string_view format_name = "flyover-training-left-out-1";

std::string path_of(std::string_view stack) {
  return fmt::format("stacks/{}.json", stack);
}

Tree parse_change(const std::string& place, const std::string& text) {
  Tree value = Tree::parse(text, nullptr, false);
  if (value.is_discarded()) throw InputError(fmt::format("{}: \"{}\" is not JSON", place, text));
  return value;
}

// The files as they are shipped, by name, with the changes but without what they extend.
std::map<std::string, Tree> changed_files(const StackChanges& changes) {
  std::map<std::string, Tree> files;
  for (const std::string& name : stack_names()) {
    files[name] = Tree::parse(embedded_file(path_of(name)), nullptr, true, true);
  }
  for (const auto& [place, text] : changes) {
    const std::size_t hash = place.find('#');
    const auto file = files.find(place.substr(0, hash));
    if (file == files.end()) {
      throw InputError(fmt::format("{}: there is no such stack", place));
    }
    if (hash == std::string::npos) {
      file->second.merge_patch(parse_change(place, text));
      continue;
    }
    const std::string pointer = place.substr(hash + 1);
    if (!pointer.starts_with('/') || !file->second.contains(Tree::json_pointer(pointer))) {
      throw InputError(
          fmt::format("{}: the stack has no such value: its rules changed since the "
                      "parameters were fitted",
                      place));
    }
    file->second[Tree::json_pointer(pointer)] = parse_change(place, text);
  }
  return files;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as stacks build on each other
Tree resolved(const std::map<std::string, Tree>& files, const std::string& name) {
  Tree tree = files.at(name);
  if (!tree.contains("extends")) return tree;
  Tree base = resolved(files, tree["extends"].get<std::string>());
  tree.erase("extends");
  base.merge_patch(tree);
  return base;
}

}  // namespace

std::map<std::string, SoftwareStack> changed_stacks(const StackChanges& changes) {
  const std::map<std::string, Tree> files = changed_files(changes);
  std::map<std::string, SoftwareStack> stacks;
  for (const auto& [name, tree] : files) {
    SoftwareStack stack =
        read_stack(Document::parse("configs/" + path_of(name), resolved(files, name).dump()));
    std::string key = stack.name;
    stacks[std::move(key)] = std::move(stack);
  }
  return stacks;
}

TrainingLeftOut::TrainingLeftOut(const Document& document) {
  const Field root = document.root();
  root.allow_only({"format", "summary", "parameters", "groups"});
  if (root["format"].text() != format_name) {
    root["format"].fail(fmt::format("expected \"{}\"", format_name));
  }
  const Field parameters = root["parameters"];
  std::map<std::string, std::vector<std::string>> places;
  for (const std::string& stack : parameters.keys()) {
    for (const Field& pointer : parameters[stack].elements()) {
      if (!pointer.text().starts_with('/')) {
        pointer.fail("expected a JSON pointer such as \"/slowdowns/0/gemm\"");
      }
      places[stack].push_back(fmt::format("{}#{}", stack, pointer.text()));
    }
  }
  const Field groups = root["groups"];
  for (const std::string& group : groups.keys()) {
    StackChanges& changes = changes_[group];
    for (const std::string& stack : groups[group].keys()) {
      const Field list = groups[group][stack];
      const std::vector<std::string>& of_stack = places[stack];
      const std::vector<Field> values = list.elements();
      if (values.size() != of_stack.size()) {
        list.fail(fmt::format("expected {} values, got {}", of_stack.size(), values.size()));
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        changes.emplace_back(of_stack[i], values[i].is_number()
                                              ? fmt::format("{}", values[i].number())
                                              : Tree(values[i].text()).dump());
      }
    }
  }
}

std::optional<TrainingLeftOut> TrainingLeftOut::shipped() {
  const auto file = std::ranges::find(embedded_files(), shipped_path, &EmbeddedFile::path);
  if (file == embedded_files().end()) return std::nullopt;
  return TrainingLeftOut(Document::parse(std::string(file->path), std::string(file->text)));
}

std::map<std::string, SoftwareStack> TrainingLeftOut::stacks(const std::string& group) const {
  return changed_stacks(changes_.at(group));
}

}  // namespace flyover::io
