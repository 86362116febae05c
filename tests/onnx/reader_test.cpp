// SPDX-License-Identifier: Apache-2.0
#include "onnx/reader.h"

#include <gtest/gtest.h>

#include "base/dtype.h"
#include "onnx/checker.h"
#include "onnx/model_bytes.h"

namespace lathe::onnx {
namespace {

Result<Model> read(const std::string& bytes) { return read_model(bytes_of(bytes)); }

TEST(OnnxReader, ReadsWhatWasWritten) {
  const auto model = read(small_model());
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(model->ir_version, 10);
  ASSERT_EQ(model->opset_imports.size(), 1u);
  EXPECT_EQ(model->opset_imports[0].version, 21);
  const GraphProto& graph = model->graph;
  ASSERT_EQ(graph.nodes.size(), 4u);
  EXPECT_EQ(graph.nodes[1].op_type, "Transpose");
  EXPECT_EQ(graph.nodes[1].find("perm")->integers, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(graph.nodes[3].find("axis")->integer, -1);
  EXPECT_EQ(graph.nodes[2].find("else_branch")->graphs.at(0).nodes.at(0).op_type, "Identity");
  EXPECT_EQ(graph.inputs[0].type.element, ElementType::float32);
  EXPECT_EQ(graph.inputs[0].type.dims.at(1).value, 3);
  ASSERT_EQ(graph.initializers.size(), 2u);
  float values[3];
  ASSERT_EQ(graph.initializers[1].bytes.size(), sizeof values);
  std::memcpy(values, graph.initializers[1].bytes.data(), sizeof values);
  EXPECT_EQ(values[2], 3);
  EXPECT_TRUE(check_model(*model));
}

TEST(OnnxReader, RawDataIsViewedNotCopied) {
  const auto buffer = std::make_shared<std::string>(small_model());
  const auto model = read_model(bytes_of(*buffer), {}, buffer);
  ASSERT_TRUE(model);
  const auto* data = reinterpret_cast<const char*>(model->graph.initializers[0].bytes.data());
  EXPECT_TRUE(data > buffer->data() && data < buffer->data() + buffer->size());
}

TEST(OnnxReader, TypedFieldsOfNarrowTypes) {
  const auto tensor_of = [](ElementType type, std::vector<int64_t> dims, int field, std::vector<int64_t> values,
                            bool packed) {
    return message([&](Writer& w) {
      for (const int64_t dim : dims) w.add_int64(1, dim);  // unpacked
      if (packed)
        w.add_packed_int64(static_cast<uint32_t>(field), values.begin(), values.end());
      else
        for (const int64_t value : values) w.add_int64(static_cast<uint32_t>(field), value);
      w.add_int32(2, static_cast<int32_t>(type));
    });
  };
  for (const bool packed : {false, true}) {
    const auto bytes = [&](ElementType type, std::vector<int64_t> dims, int field, std::vector<int64_t> values) {
      auto tensor = read_tensor(bytes_of(tensor_of(type, dims, field, values, packed)));
      EXPECT_TRUE(tensor) << tensor.error().to_string();
      return tensor ? std::string(reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size()) : "";
    };
    EXPECT_EQ(bytes(ElementType::int8, {3}, 5, {-1, 2, 3}), std::string("\xff\x02\x03"));
    EXPECT_EQ(bytes(ElementType::boolean, {2}, 5, {1, 0}), std::string("\x01\x00", 2));
    EXPECT_EQ(bytes(ElementType::float16, {2}, 5, {0x3c00, 0x4000}), std::string("\x00\x3c\x00\x40", 4));
    EXPECT_EQ(bytes(ElementType::bfloat16, {1}, 5, {0x3f80}), std::string("\x80\x3f"));
    EXPECT_EQ(bytes(ElementType::uint4, {3}, 5, {0x21, 0x03}), std::string("\x21\x03"));
    EXPECT_EQ(bytes(ElementType::uint32, {1}, 11, {0xfffffffe}), std::string("\xfe\xff\xff\xff"));
    EXPECT_EQ(bytes(ElementType::int64, {1}, 7, {-2}), std::string("\xfe\xff\xff\xff\xff\xff\xff\xff"));
    EXPECT_EQ(bytes(ElementType::int32, {0, 5}, 5, {}), "");
  }
}

TEST(OnnxReader, ContentThatDoesNotFitTheDimsIsRefused) {
  const auto error_of = [](const std::string& bytes) {
    const auto tensor = read_tensor(bytes_of(bytes));
    return tensor ? std::string("accepted") : tensor.error().message;
  };
  EXPECT_NE(error_of(raw_tensor<float>("w", 1, {2}, {1, 2, 3})).find("needs 8 bytes, but raw_data has 12"),
            std::string::npos);
  EXPECT_NE(error_of(raw_tensor<float>("w", 1, {-1}, {1})).find("negative or too large"), std::string::npos);
  EXPECT_NE(error_of(raw_tensor<float>("w", 1, {int64_t{1} << 40, int64_t{1} << 40}, {1})).find("too large"),
            std::string::npos);
  EXPECT_NE(error_of(raw_tensor<float>("w", 99, {1}, {1})).find("element type 99 does not exist"), std::string::npos);
  EXPECT_NE(error_of(raw_tensor<float>("w", 8, {1}, {1})).find("strings must be"), std::string::npos);
  const std::string both = raw_tensor<float>("w", 1, {1}, {1}) + message([](Writer& w) { w.add_float(4, 1); });
  EXPECT_NE(error_of(both).find("more than one field"), std::string::npos);
  const std::string wrong = message([](Writer& w) { w.add_int64(1, 1), w.add_int32(2, 1), w.add_int64(7, 5); });
  EXPECT_NE(error_of(wrong).find("does not belong to float32"), std::string::npos);
}

TEST(OnnxReader, EveryTruncationIsSafe) {
  const std::string whole = small_model();
  for (size_t size = 0; size < whole.size(); ++size) {
    // A fresh exact-size allocation, so that sanitizers see any read past the end.
    const std::vector<char> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    const auto model = read_model(std::as_bytes(std::span(part)));
    if (!model)
      EXPECT_TRUE(model.error().code == ErrorCode::model_malformed || model.error().code == ErrorCode::model_invalid);
    else
      (void)check_model(*model);  // cut between two fields of the outermost message
  }
}

TEST(OnnxReader, EveryBitFlipIsSafe) {
  std::string bytes = small_model();
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      const auto model = read(bytes);
      if (model) (void)check_model(*model);
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
    }
}

TEST(OnnxReader, WrongWireTypesAndLengthsSayWhere) {
  const auto message_of = [](const std::string& bytes) {
    const auto model = read(bytes);
    return model ? std::string("accepted") : std::string(name_of(model.error().code)) + ": " + model.error().message;
  };
  EXPECT_EQ(message_of(message([](Writer& w) { w.add_string(1, "ten"); })),
            "model_malformed: byte 1: wrong wire type in field 1 of ModelProto; the file is damaged, incomplete or not "
            "an ONNX model");
  EXPECT_NE(message_of("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f").find("length beyond the end"), std::string::npos);
  EXPECT_NE(message_of("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f").find("more than 64 bits"),
            std::string::npos);
  EXPECT_NE(message_of(std::string("\x00\x01", 2)).find("invalid field number"), std::string::npos);
  EXPECT_NE(message_of("\x3b").find("unknown wire type"), std::string::npos);
  EXPECT_NE(message_of("").find("holds no graph"), std::string::npos);
}

TEST(OnnxReader, NestingIsLimited) {
  std::string inner = graph({{node("Identity", {"x"}, {"y"})}, {}, {}, {}});
  for (int i = 0; i < 60; ++i)
    inner = graph({{node("If", {"c"}, {"y"}, {graph_attribute("then_branch", inner)})}, {}, {}, {}});
  const auto result = read(model(inner));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::model_limit);
}

TEST(OnnxReader, MemoryIsBoundedByTheFile) {
  std::string nodes;
  for (int i = 0; i < 2'000'000; ++i) nodes += std::string("\x0a\x00", 2);  // empty NodeProto
  const auto result = read(message([&](Writer& w) { w.add_message(7, nodes); }));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::model_limit);
}

TEST(OnnxReader, AllFaultyTensorsAreListed) {
  const auto result =
      read(model(graph({{}, {raw_tensor<float>("a", 1, {2}, {1}), raw_tensor<float>("b", 1, {3}, {1})}, {}, {}})));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().notes.size(), 2u);
}

}  // namespace
}  // namespace lathe::onnx
