// SPDX-License-Identifier: Apache-2.0
// All fields of a plan as texts, by the list that the format itself goes by: two plans are the same when they agree.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "plan/fields.h"

namespace lathe::plan {

class Flatten {
 public:
  static std::vector<std::string> plan(const Plan& plan) {
    Flatten flatten;
    fields(flatten, plan);
    return std::move(flatten.texts_);
  }

  template <class T>
  void number(uint16_t, T value) {
    texts_.push_back(std::to_string(value));
  }
  template <class T>
  void choice(uint16_t, T value, T, const char*) {
    texts_.push_back(std::to_string(static_cast<int>(value)));
  }
  void dtype(uint16_t, DType value) { texts_.emplace_back(name_of(value)); }
  void text(uint16_t, const std::string& value) { texts_.push_back(value); }
  void expression(uint16_t, const Expr& value) { index(value); }
  void digest(uint16_t, const Digest& value) { bytes(value.data(), value.size()); }
  void shape(uint16_t, std::span<const Expr> values) {
    texts_.push_back(std::to_string(values.size()));
    for (const Expr& e : values) index(e);
  }
  void grid(uint16_t field, std::span<const Expr, 3> values) { shape(field, values); }
  template <class T>
  void numbers(uint16_t, const std::vector<T>& values) {
    texts_.push_back(std::to_string(values.size()));
    for (const T value : values) texts_.push_back(std::to_string(value));
  }
  void strings(uint16_t, const std::vector<std::string>& values) {
    texts_.push_back(std::to_string(values.size()));
    texts_.insert(texts_.end(), values.begin(), values.end());
  }
  template <class Packed, class T>
  void structs(uint16_t, const std::vector<T>& values, size_t) {
    texts_.push_back(std::to_string(values.size()));
    for (const T& value : values) {
      const Packed packed = pack(*this, value);
      bytes(&packed, sizeof packed);
    }
  }
  template <class T>
  void tables(uint16_t, const std::vector<T>& values) {
    texts_.push_back(std::to_string(values.size()));
    for (const T& value : values) fields(*this, value);
  }
  template <class Parent, class List>
  void children(uint16_t, const std::vector<Parent>& parents, size_t, const char*, const List& list_of) {
    for (const Parent& parent : parents) {
      const auto* list = list_of(parent);
      texts_.push_back(list ? std::to_string(list->size()) : "none");
      if (!list) continue;
      for (const auto& child : *list) fields(*this, child);
    }
  }
  template <class T>
  void count(uint16_t, const std::vector<T>& values) {
    texts_.push_back(std::to_string(values.size()));
  }
  void work(uint16_t, uint16_t, const Work& work) {
    texts_.push_back(std::to_string(work.index()));
    std::visit([&](const auto& alternative) { fields(*this, alternative); }, work);
  }
  void place(uint16_t, uint16_t, std::span<const std::byte> code) { bytes(code.data(), code.size()); }
  uint32_t index(const Expr& e) {
    texts_.push_back(e.to_string());
    return 0;
  }

 private:
  void bytes(const void* data, size_t size) { texts_.emplace_back(static_cast<const char*>(data), size); }

  std::vector<std::string> texts_;
};

}  // namespace lathe::plan
