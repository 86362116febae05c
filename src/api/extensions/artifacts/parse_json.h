// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace lathe::api::artifacts {

// Discarded where the text is no JSON. What is nested deeper than requests and notes are is left out: nlohmann's values
// are copied and printed recursively, and a text of brackets alone would exhaust the stack.
inline nlohmann::json parse_json(std::string_view text) {
  constexpr int kDeepest = 16;
  constexpr bool kThrows = false;
  const auto is_shallow = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) { return depth <= kDeepest; };
  return nlohmann::json::parse(text, is_shallow, kThrows);
}

}  // namespace lathe::api::artifacts
