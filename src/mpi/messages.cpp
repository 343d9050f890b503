#include "mpi/messages.hpp"

#include <new>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "flyover/base/error.hpp"

namespace flyover::mpi {

namespace {

using Json = nlohmann::json;

enum class ErrorKind : std::uint8_t { Input, Simulation, Memory, Internal };

Json to_json(const SweepValues& values) {
  Json out = Json::array();
  for (const auto& [name, value] : values) {
    out.push_back(name);
    std::visit([&](const auto& each) { out.push_back(each); }, value);
  }
  return out;
}

SweepValue to_value(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) return value.get<double>();
  return value.get<std::string>();
}

SweepValues to_values(const Json& list) {
  SweepValues values;
  values.reserve(list.size() / 2);
  for (std::size_t i = 0; i + 1 < list.size(); i += 2) {
    values.emplace_back(list[i].get<std::string>(), to_value(list[i + 1]));
  }
  return values;
}

}  // namespace

Bytes pack(const PointBatch& batch) {
  return Json::to_cbor(Json::array({static_cast<int>(batch.fidelity), batch.numbers}));
}

PointBatch unpack_batch(const Bytes& bytes) {
  const Json message = Json::from_cbor(bytes);
  return {.fidelity = static_cast<Fidelity>(message.at(0).get<int>()),
          .numbers = message.at(1).get<std::vector<std::uint64_t>>()};
}

Bytes pack(const std::vector<PointResult>& results) {
  Json out = Json::array();
  for (const PointResult& each : results) {
    out.push_back(Json::array({each.number, static_cast<int>(each.status), each.reason,
                               to_json(each.inputs), to_json(each.outputs), each.seconds}));
  }
  return Json::to_cbor(out);
}

std::vector<PointResult> unpack_results(const Bytes& bytes) {
  std::vector<PointResult> results;
  for (const Json& each : Json::from_cbor(bytes)) {
    results.push_back({.number = each.at(0).get<std::uint64_t>(),
                       .status = static_cast<PointStatus>(each.at(1).get<int>()),
                       .reason = each.at(2).get<std::string>(),
                       .inputs = to_values(each.at(3)),
                       .outputs = to_values(each.at(4)),
                       .seconds = each.at(5).get<double>()});
  }
  return results;
}

Bytes pack(std::uint64_t number) {
  return Json::to_cbor(Json(number));
}
std::uint64_t unpack_number(const Bytes& bytes) {
  return Json::from_cbor(bytes).get<std::uint64_t>();
}

Bytes pack(const std::string& text) {
  return {text.begin(), text.end()};
}
std::string unpack_text(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

Bytes pack(const std::exception_ptr& error) {
  const auto message = [](ErrorKind kind, const char* text) {
    return Json::to_cbor(Json::array({static_cast<int>(kind), text}));
  };
  try {
    std::rethrow_exception(error);
  } catch (const InputError& input) {
    return message(ErrorKind::Input, input.what());
  } catch (const SimulationError& simulation) {
    return message(ErrorKind::Simulation, simulation.what());
  } catch (const std::bad_alloc&) {
    return message(ErrorKind::Memory, "");
  } catch (const std::exception& other) {
    return message(ErrorKind::Internal, other.what());
  } catch (...) {
    return message(ErrorKind::Internal, "something that is no exception");
  }
}

void rethrow(const Bytes& bytes, const std::string& before) {
  const Json message = Json::from_cbor(bytes);
  const std::string text = before + message.at(1).get<std::string>();
  switch (static_cast<ErrorKind>(message.at(0).get<int>())) {
    case ErrorKind::Input:
      throw InputError(text);
    case ErrorKind::Memory:
      throw SimulationError(before + "the simulation needs more memory than there is");
    case ErrorKind::Simulation:
      throw SimulationError(text);
    case ErrorKind::Internal:
      break;
  }
  throw InternalError(text);
}

}  // namespace flyover::mpi
