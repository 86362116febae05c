// SPDX-License-Identifier: Apache-2.0
// Parameters of kernels, as a plan holds them: each kernel has a struct of its own, which lists its members once, and
// is written as a list of integers and read back by the same list.
//
//   struct SoftmaxParams {
//     int axis = 0;
//     bool log = false;
//     static constexpr auto members() { return std::tuple(&SoftmaxParams::axis, &SoftmaxParams::log); }
//   };
//
// Members are integers, booleans, enumerations, floats (by their bits), arrays and vectors of such, and structs that
// list their members. A vector is preceded by its length.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

namespace lathe {

template <class T>
concept Params = requires {
  T::members();
};

namespace params {

template <class T>
void write(const T& value, std::vector<int64_t>& out);
template <class T>
bool read(T& value, std::span<const int64_t>& in);

template <class T>
inline constexpr bool is_list = false;
template <class T, size_t n>
inline constexpr bool is_list<std::array<T, n>> = true;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

template <class T>
void write(const T& value, std::vector<int64_t>& out) {
  if constexpr (Params<T>) {
    std::apply([&](auto... member) { (write(value.*member, out), ...); }, T::members());
  } else if constexpr (is_list<T>) {
    if constexpr (is_vector<T>) out.push_back(static_cast<int64_t>(value.size()));
    for (const auto& each : value) write(each, out);
  } else if constexpr (std::is_same_v<T, float>) {
    out.push_back(std::bit_cast<int32_t>(value));
  } else if constexpr (std::is_same_v<T, double>) {
    out.push_back(std::bit_cast<int64_t>(value));
  } else {
    out.push_back(static_cast<int64_t>(value));
  }
}

// An integer that the member's type does not hold is refused; that an enumeration has the value is the kernel's to
// check.
template <class T>
bool read_integer(T& value, int64_t from) {
  if constexpr (std::is_enum_v<T>) {
    std::underlying_type_t<T> number{};
    if (!read_integer(number, from)) return false;
    value = static_cast<T>(number);
  } else {
    if constexpr (std::is_same_v<T, bool>) {
      if (from != 0 && from != 1) return false;
    } else if constexpr (sizeof(T) < sizeof(int64_t)) {
      if (from < std::numeric_limits<T>::min() || from > static_cast<int64_t>(std::numeric_limits<T>::max()))
        return false;
    }
    value = static_cast<T>(from);
  }
  return true;
}

template <class T>
bool read(T& value, std::span<const int64_t>& in) {
  if constexpr (Params<T>) {
    return std::apply([&](auto... member) { return (read(value.*member, in) && ...); }, T::members());
  } else {
    if constexpr (is_vector<T>) {
      if (in.empty() || in[0] < 0 || in[0] > static_cast<int64_t>(in.size()) - 1) return false;
      value.resize(static_cast<size_t>(in[0]));
      in = in.subspan(1);
    }
    if constexpr (is_list<T>) {
      for (auto& each : value)
        if (!read(each, in)) return false;
      return true;
    } else {
      if (in.empty()) return false;
      const int64_t from = in[0];
      in = in.subspan(1);
      if constexpr (std::is_same_v<T, float>) {
        value = std::bit_cast<float>(static_cast<int32_t>(from));
        return std::bit_cast<int32_t>(value) == from;
      } else if constexpr (std::is_same_v<T, double>) {
        value = std::bit_cast<double>(from);
        return true;
      } else {
        return read_integer(value, from);
      }
    }
  }
}

// Members at the end that came after a release: its records end before them, and they have their initial values then.
template <class T>
constexpr size_t added_members() {
  if constexpr (requires { T::kAddedMembers; })
    return T::kAddedMembers;
  else
    return 0;
}

}  // namespace params

template <Params T>
std::vector<int64_t> encode_params(const T& value) {
  std::vector<int64_t> out;
  params::write(value, out);
  return out;
}

// nullopt where the list is too short or too long, or a number does not fit its member. Ranges are the kernel's to
// check: the list comes from a file.
template <Params T>
std::optional<T> decode_params(std::span<const int64_t> list) {
  T value{};
  constexpr auto members = T::members();
  constexpr size_t needed = std::tuple_size_v<std::remove_const_t<decltype(members)>> - params::added_members<T>();
  size_t i = 0;
  const bool is_read = std::apply(
      [&](auto... member) { return (((i++ >= needed && list.empty()) || params::read(value.*member, list)) && ...); },
      members);
  if (!is_read || !list.empty()) return std::nullopt;
  return value;
}

}  // namespace lathe
