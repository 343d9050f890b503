#include <cstdio>

#include <flyover/base/quantity.hpp>

int main() {
  using namespace flyover;
  const Duration time = transfer_time(parse_bytes("1 GiB"), parse_bandwidth("400 Gb/s"));
  std::printf("%s\n", to_string(time).c_str());
  return time > Duration::zero() ? 0 : 1;
}
