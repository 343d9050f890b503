#include "io/layered_config.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "flyover/base/error.hpp"
#include "flyover/base/text.hpp"
#include "flyover/io/embedded.hpp"

namespace flyover::io {

namespace {

namespace fs = std::filesystem;
using Tree = nlohmann::ordered_json;

Tree parse_tree(std::string_view text) {
  return Tree::parse(text, nullptr, true, true);
}

std::string path_of(const ConfigFamily& family, std::string_view name) {
  return fmt::format("{}/{}.json", family.folder, name);
}

// NOLINTNEXTLINE(misc-no-recursion)
Tree shipped_tree(const ConfigFamily& family, const std::string& name) {
  Tree tree = parse_tree(embedded_file(path_of(family, name)));
  if (!tree.contains("extends")) return tree;
  Tree base = shipped_tree(family, tree["extends"].get<std::string>());
  tree.erase("extends");
  base.merge_patch(tree);
  return base;
}

std::string known_name(const ConfigFamily& family, std::string_view name) {
  const std::vector<std::string> names = config_names(family);
  if (std::ranges::find(names, name) != names.end()) return std::string(name);
  const std::string meant = did_you_mean(name, names);
  throw InputError(fmt::format("no {} \"{}\"{} There are {}", family.kind, name,
                               meant.empty() ? "." : meant, fmt::join(names, ", ")));
}

std::string text_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

std::vector<std::string> config_names(const ConfigFamily& family) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    const fs::path path(file.path);
    if (path.parent_path() == family.folder) names.push_back(path.stem().string());
  }
  std::ranges::sort(names);
  return names;
}

Document config_document(const ConfigFamily& family, std::string_view name) {
  if (!name.ends_with(".json")) {
    const std::string known = known_name(family, name);
    return Document::parse("configs/" + path_of(family, known),
                           shipped_tree(family, known).dump(2));
  }
  Document document = Document::load(fs::path(name));
  const Field root = document.root();
  if (!root.has("extends")) return document;
  const std::string base =
      root["extends"].parsed([&](const std::string& text) { return known_name(family, text); });
  Tree tree = shipped_tree(family, base);
  Tree patch = parse_tree(text_of(fs::path(name)));
  patch.erase("extends");
  tree.merge_patch(patch);
  return Document::parse(std::string(name), tree.dump(2));
}

}  // namespace flyover::io
