// SPDX-License-Identifier: Apache-2.0
#include "onnx/external_data.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "onnx/model_bytes.h"

namespace lathe::onnx {
namespace {

namespace fs = std::filesystem;

class OnnxExternalData : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / fmt::format("lathe-external-{}", ::getpid());
    fs::remove_all(root_);
    fs::create_directories(root_ / "model" / "sub");
    write(root_ / "secret", "topsecret");
    write(root_ / "model" / "weights", "0123456789abcdef");
    write(root_ / "model" / "sub" / "weights", "ABCDEFGH");
  }
  void TearDown() override { fs::remove_all(root_); }
  static void write(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }

  // The content found, or "code: message".
  std::string find(std::string location, std::string offset = "", std::string length = "", uint64_t size = 4) {
    ExternalData data((root_ / "model").string());
    const auto piece = data.find("w", {location, offset, length}, size);
    if (!piece) return fmt::format("{}: {}", name_of(piece.error().code), piece.error().message);
    return std::string(reinterpret_cast<const char*>(piece->bytes.data()), piece->bytes.size());
  }
  void expect_refused(const std::string& location, std::string_view reason) {
    const std::string text = find(location);
    EXPECT_TRUE(text.starts_with("model_external_data: tensor 'w', file '")) << text;
    EXPECT_NE(text.find(reason), std::string::npos) << text;
  }
  fs::path root_;
};

TEST_F(OnnxExternalData, FindsPieces) {
  EXPECT_EQ(find("weights"), "0123");
  EXPECT_EQ(find("weights", "10", "6", 6), "abcdef");
  EXPECT_EQ(find("sub/weights", "4"), "EFGH");
  EXPECT_EQ(find("./sub//weights", "0", "4"), "ABCD");
  EXPECT_EQ(find("weights", "16", "0", 0), "");
}

TEST_F(OnnxExternalData, BoundsAreChecked) {
  EXPECT_NE(find("weights", "13").find("needs 4 bytes from offset 13, but the file has 16"), std::string::npos);
  EXPECT_NE(find("weights", "18446744073709551615").find("the file has 16"), std::string::npos);
  EXPECT_NE(find("weights", "18446744073709551616").find("not a number"), std::string::npos);
  EXPECT_NE(find("weights", "-1").find("not a number"), std::string::npos);
  EXPECT_NE(find("weights", "0", "5").find("given as 5 bytes, but its type and dims need 4"), std::string::npos);
  EXPECT_NE(find("weights", "1", "", UINT64_MAX).find("the file has 16"), std::string::npos);
}

TEST_F(OnnxExternalData, PathsStayInside) {
  fs::create_symlink(root_ / "secret", root_ / "model" / "link");
  fs::create_directory_symlink(root_, root_ / "model" / "up");
  fs::create_hard_link(root_ / "secret", root_ / "model" / "hard");
  ASSERT_EQ(::mkfifo((root_ / "model" / "fifo").c_str(), 0600), 0);
  expect_refused("../secret", "'..' is not allowed");
  expect_refused("sub/../../secret", "'..' is not allowed");
  expect_refused((root_ / "secret").string(), "absolute");
  expect_refused("link", "symbolic link");
  expect_refused("up/secret", "symbolic link");
  expect_refused("hard", "hard links");
  expect_refused("fifo", "not a regular file");
  expect_refused("sub", "not a regular file");
  expect_refused("", "empty");
  expect_refused(".", "names no file");
  expect_refused("missing", "No such file");
  expect_refused(std::string("weights\0x", 9), "zero byte");
}

TEST_F(OnnxExternalData, ModelFileFindsItsDataBesideIt) {
  const std::string tensor = message([](Writer& w) {
    w.add_int64(1, 4), w.add_int32(2, 2), w.add_string(8, "w"), w.add_int32(14, 1);
    for (const auto& [key, value] :
         {std::pair("location", "sub/weights"), std::pair("offset", "2"), std::pair("length", "4")})
      w.add_message(13, message([&, k = key, v = value](Writer& e) { e.add_string(1, k), e.add_string(2, v); }));
  });
  const std::string bytes = model(graph({{}, {tensor}, {}, {}}));
  write(root_ / "model" / "m.onnx", bytes);
  const auto read = read_model_file((root_ / "model" / "m.onnx").string());
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(std::memcmp(read->graph.initializers[0].bytes.data(), "CDEF", 4), 0);
  const auto nowhere = read_model(bytes_of(bytes));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::model_external_data);
}

}  // namespace
}  // namespace lathe::onnx
