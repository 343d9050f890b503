#pragma once

#include <string>

namespace flyover {

// The range of a time by its factors, in percent of it and to two digits: "-8/+14%", "-0.6/+3.1%".
[[nodiscard]] std::string range_text(double low, double high);

}  // namespace flyover
