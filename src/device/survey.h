// SPDX-License-Identifier: Apache-2.0
// What a machine has of a kind of devices, and what is wrong with it: for `lathe doctor`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lathe {

struct Survey {
  struct Fact {
    std::string_view name;  // "multiprocessors"; of what is counted in bytes "..._bytes"
    std::variant<std::string, int64_t> value;
  };
  struct Device {
    std::string name;     // "cuda:0"
    std::string product;  // as its maker calls it
    std::string target;   // "cuda-sm_90"; empty where plans for it cannot be built
    std::vector<Fact> facts;
  };
  struct Check {
    std::string name;
    bool good = false;
    std::string detail;
    std::string remedy;  // empty when good
  };
  std::vector<Device> devices;
  std::vector<Check> checks;
};

}  // namespace lathe
