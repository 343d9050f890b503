#include "flyover/base/version.hpp"

namespace flyover {

std::string_view version() {
  return FLYOVER_VERSION;
}

}  // namespace flyover
