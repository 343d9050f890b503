#pragma once

#include <map>
#include <string>

#include "flyover/routing/router.hpp"
#include "flyover/topology/topology.hpp"

namespace flyover::test {

// "" when the route keeps the laws of every route, else the law that it breaks: all bytes leave the
// sender and arrive, none are lost or made on the way; every link is in service; no GPU is passed
// but one that relays, no NIC but those of the two nodes, and between GPUs of a node none at all.
[[nodiscard]] std::string broken_law(const Topology& topology, const Route& route,
                                     std::uint32_t from, std::uint32_t to);

// The share on each link, by the names of its ends ("a -> b"); parallel links added up.
[[nodiscard]] std::map<std::string, double> by_name(const Topology& topology, const Route& route);

// The sum of the shares on links of a kind.
[[nodiscard]] double share_on(const Topology& topology, const Route& route, LinkKind kind);

}  // namespace flyover::test
