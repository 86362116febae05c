// SPDX-License-Identifier: Apache-2.0
// Who has a driver load code or prepare graphs in the background takes turns with all who do: runs wait for the driver
// meanwhile, and are let through between two turns.
#pragma once

#include <chrono>
#include <mutex>

namespace lathe {

inline constexpr std::chrono::milliseconds kBetweenTurns(2);

// Of the process, as the driver's locks are.
inline std::mutex& driver_turns() {
  static std::mutex turns;
  return turns;
}

}  // namespace lathe
