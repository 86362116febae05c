// SPDX-License-Identifier: Apache-2.0
// Writes ONNX protobuf messages for tests.
#pragma once

#include <cstring>
#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/reader.h"

namespace lathe::onnx {

using Writer = protozero::pbf_writer;

// Builds one message: message([](Writer& w) { w.add_int64(1, 3); }).
template <class F>
std::string message(F&& fill) {
  std::string bytes;
  Writer writer(bytes);
  fill(writer);
  return bytes;
}

inline std::string value_info(std::string_view name, int type, std::initializer_list<int64_t> dims) {
  const std::string shape = message([&](Writer& w) {
    for (const int64_t dim : dims) w.add_message(1, message([&](Writer& d) { d.add_int64(1, dim); }));
  });
  const std::string tensor = message([&](Writer& w) { w.add_int32(1, type), w.add_message(2, shape); });
  const std::string type_proto = message([&](Writer& w) { w.add_message(1, tensor); });
  return message([&](Writer& w) { w.add_string(1, name.data(), name.size()), w.add_message(2, type_proto); });
}

inline std::string node(std::string_view op, std::initializer_list<const char*> inputs,
                        std::initializer_list<const char*> outputs, std::initializer_list<std::string> attributes = {},
                        std::string_view domain = "", std::string_view overload = "") {
  return message([&](Writer& w) {
    for (const char* input : inputs) w.add_string(1, input);
    for (const char* output : outputs) w.add_string(2, output);
    w.add_string(4, op.data(), op.size());
    for (const std::string& attribute : attributes) w.add_message(5, attribute);
    if (!domain.empty()) w.add_string(7, domain.data(), domain.size());
    if (!overload.empty()) w.add_string(8, overload.data(), overload.size());
  });
}

inline std::string int_attribute(const char* name, int64_t value) {
  return message([&](Writer& w) { w.add_string(1, name), w.add_int64(3, value), w.add_int32(20, 2); });
}

inline std::string ints_attribute(const char* name, std::vector<int64_t> values) {
  return message([&](Writer& w) {
    w.add_string(1, name), w.add_packed_int64(8, values.begin(), values.end()), w.add_int32(20, 7);
  });
}

inline std::string real_attribute(const char* name, float value) {
  return message([&](Writer& w) { w.add_string(1, name), w.add_float(2, value), w.add_int32(20, 1); });
}

inline std::string reals_attribute(const char* name, std::vector<float> values) {
  return message([&](Writer& w) {
    w.add_string(1, name), w.add_packed_float(7, values.begin(), values.end()), w.add_int32(20, 6);
  });
}

inline std::string string_attribute(const char* name, const char* value) {
  return message([&](Writer& w) { w.add_string(1, name), w.add_string(4, value), w.add_int32(20, 3); });
}

inline std::string reference_attribute(const char* name, const char* to, int type) {
  return message([&](Writer& w) { w.add_string(1, name), w.add_string(21, to), w.add_int32(20, type); });
}

inline std::string graph_attribute(const char* name, const std::string& graph) {
  return message([&](Writer& w) { w.add_string(1, name), w.add_message(6, graph), w.add_int32(20, 5); });
}

template <class T>
std::string raw_tensor(std::string_view name, int type, std::vector<int64_t> dims, std::vector<T> values) {
  return message([&](Writer& w) {
    w.add_packed_int64(1, dims.begin(), dims.end()), w.add_int32(2, type), w.add_string(8, name.data(), name.size());
    w.add_bytes(9, reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  });
}

struct GraphParts {
  std::vector<std::string> nodes, initializers, inputs, outputs;
};

inline std::string graph(const GraphParts& parts) {
  return message([&](Writer& w) {
    for (const auto& node : parts.nodes) w.add_message(1, node);
    w.add_string(2, "main");
    for (const auto& tensor : parts.initializers) w.add_message(5, tensor);
    for (const auto& value : parts.inputs) w.add_message(11, value);
    for (const auto& value : parts.outputs) w.add_message(12, value);
  });
}

inline std::string opset(int64_t version, std::string_view domain = "") {
  return message([&](Writer& w) { w.add_string(1, domain.data(), domain.size()), w.add_int64(2, version); });
}

inline std::string model(const std::string& graph, int64_t ir = 10, std::vector<std::string> opsets = {opset(21)},
                         std::vector<std::string> functions = {}) {
  return message([&](Writer& w) {
    w.add_int64(1, ir);
    w.add_message(7, graph);
    for (const auto& opset : opsets) w.add_message(8, opset);
    for (const auto& function : functions) w.add_message(25, function);
  });
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A model that uses most kinds of field: y = Add(Conv-like(x, w), b) with nested graph, attributes, typed data.
inline std::string small_model() {
  const std::string branch = graph({{node("Identity", {"x"}, {"t"})}, {}, {}, {value_info("t", 1, {2, 3})}});
  const std::string packed = message([](Writer& w) {
    const float values[] = {1, 2, 3};
    const int64_t dims[] = {3};
    w.add_packed_int64(1, dims, dims + 1), w.add_int32(2, 1), w.add_packed_float(4, values, values + 3),
        w.add_string(8, "b");
  });
  return model(graph(
      {{node("Add", {"x", "w"}, {"s"}), node("Transpose", {"s"}, {"u"}, {ints_attribute("perm", {0, 1})}),
        node("If", {"c"}, {"v"}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}),
        node("Softmax", {"u"}, {"y"}, {int_attribute("axis", -1)})},
       {raw_tensor<float>("w", 1, {2, 3}, {1, 2, 3, 4, 5, 6}), packed},
       {value_info("x", 1, {2, 3}), value_info("c", 9, {})},
       {value_info("y", 1, {2, 3})}}));
}

}  // namespace lathe::onnx
