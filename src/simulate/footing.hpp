#pragma once

// Where the parts of a loader stand: its blocks, numbered as they come, and the lists of switches
// above them.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulate/blocks.hpp"
#include "simulate/digest.hpp"
#include "simulate/program.hpp"

namespace flyover {

// Where a touch lands: on the n-th block of a loader, on a link of the tree above it, or on a node
// that only this very loader touches.
struct Spot {
  enum class Kind : std::uint8_t { Block, Tree, Node };
  Kind kind = Kind::Node;
  bool up = false;
  std::uint32_t number = 0;  // Of the loader's blocks, or the node.
  std::uint32_t level = 0;
  std::uint32_t index = 0;  // In the list of the level.

  friend auto operator<=>(const Spot&, const Spot&) = default;
};

// The blocks of a loader, numbered, and the lists of switches above them.
class Footing {
 public:
  explicit Footing(const Blocks& blocks)
      : blocks_(blocks),
        number_(blocks.size(), absent),
        owner_(blocks.lists(), Owner{absent, 0}) {}

  void clear();
  // Returns the block's number; of a new one adds to `lie` what it is and how it lies to the
  // others.
  std::uint32_t add(std::uint32_t block, Digest& lie);
  // Clears it and adds the blocks of a group's ranks. Returns how the ranks lie to each other.
  Digest stand_on(std::span<const std::uint32_t> ranks);

  [[nodiscard]] const std::vector<std::uint32_t>& blocks() const { return order_; }
  [[nodiscard]] std::uint32_t number(std::uint32_t block) const { return number_[block]; }
  // The spot of a link of the tree, if it is above one of the blocks.
  [[nodiscard]] std::optional<Spot> spot(const TreePlace& place) const {
    const Owner& owner = owner_[place.list];
    if (owner.number == absent) return std::nullopt;
    return Spot{Spot::Kind::Tree, place.up, owner.number, owner.level, place.index};
  }

 private:
  struct Owner {
    std::uint32_t number;
    std::uint32_t level;
  };
  const Blocks& blocks_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> number_;  // By block.
  std::vector<Owner> owner_;           // By list: the first block below it.
  std::vector<std::uint32_t> lists_;   // That have an owner.
};

}  // namespace flyover
