#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace flyover {

// Handles into the arrays that own the things. A LinkId cannot be passed where a VertexId is meant.
enum class VertexId : std::uint32_t {};
enum class LinkId : std::uint32_t {};
enum class NodeId : std::uint32_t {};  // A server or rack: one scale-up domain of a topology.
enum class ResourceId : std::uint32_t {};
enum class StreamId : std::uint32_t {};
enum class OpId : std::uint32_t {};

template <class Id>
[[nodiscard]] constexpr std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}

// A std::vector that is indexed by its own kind of id.
template <class Id, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t size, const T& value = T{}) : items_(size, value) {}

  Id push_back(T item) {
    items_.push_back(std::move(item));
    return Id(items_.size() - 1);
  }
  void reserve(std::size_t size) { items_.reserve(size); }
  void resize(std::size_t size, const T& value = T{}) { items_.resize(size, value); }

  [[nodiscard]] T& operator[](Id id) { return items_[index(id)]; }
  [[nodiscard]] const T& operator[](Id id) const { return items_[index(id)]; }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }
  [[nodiscard]] auto begin() { return items_.begin(); }
  [[nodiscard]] auto end() { return items_.end(); }

 private:
  std::vector<T> items_;
};

}  // namespace flyover
