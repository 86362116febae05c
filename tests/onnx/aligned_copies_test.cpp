// SPDX-License-Identifier: Apache-2.0
#include "onnx/aligned_copies.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/file.h"
#include "onnx/model_bytes.h"
#include "onnx/node_context.h"
#include "onnx/reader.h"

namespace lathe::onnx {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kCount = 1 << 16;
constexpr size_t kMiddle = kCount / 2;  // of memory that is whole pages

class AlignedCopiesTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (fs::temp_directory_path() / fs::path("lathe_askew_" + std::to_string(::getpid()))).string();
    std::vector<std::byte> bytes(kCount * sizeof(float) + 1);
    for (int64_t i = 0; i < kCount; ++i) {
      const auto value = static_cast<float>(i + 1);
      std::memcpy(bytes.data() + 1 + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
    }
    ASSERT_TRUE(write_file_atomically(path_, bytes));
    const auto file = MappedFile::open(path_).value();
    tensor_ = copies_->add(DType::f32, {kCount}, file->bytes().subspan(1), file).value();
  }
  void TearDown() override { fs::remove(path_); }

  static bool is_there(const Tensor& tensor) {
    for (int64_t i = 0; i < kCount; ++i)
      if (tensor.as<float>()[i] != static_cast<float>(i + 1)) return false;
    return true;
  }

  std::string path_;
  std::shared_ptr<AlignedCopies> copies_ = std::make_shared<AlignedCopies>();
  Tensor tensor_;
};

TEST_F(AlignedCopiesTest, WhatNobodyReadsIsForgottenAndComesBack) {
  EXPECT_TRUE(is_there(tensor_));
  {
    UnreadCopies unread({copies_});
    EXPECT_TRUE(is_there(tensor_));
    unread.forget();
    EXPECT_EQ(tensor_.as<float>()[kMiddle], 0);
    unread.forget();
  }
  EXPECT_TRUE(is_there(tensor_));
}

TEST_F(AlignedCopiesTest, WhatSomebodyReadsStays) {
  UnreadCopies unread({copies_});
  Tensor reader = tensor_.reshaped({kCount / 2, 2});
  unread.forget();
  EXPECT_TRUE(is_there(tensor_));
  reader = Tensor();
  unread.forget();
  EXPECT_EQ(tensor_.as<float>()[kMiddle], 0);
}

TEST_F(AlignedCopiesTest, WhatIsGoneIsNotKept) {
  const std::weak_ptr<const void> owner = tensor_.owner();
  UnreadCopies before({copies_});
  tensor_ = Tensor();
  EXPECT_FALSE(owner.expired());
  before.forget();
  UnreadCopies after({copies_, std::make_shared<AlignedCopies>()});
  after.forget();
}

// Of a model's file one is made where a large tensor lies askew, and of a buffer none that could be made again.
TEST_F(AlignedCopiesTest, OfModels) {
  const std::vector<float> values(kCount, 3);
  for (int pad = 0; pad < 4; ++pad) {
    const std::string bytes =
        model(graph({{node("Identity", {"w"}, {std::string(static_cast<size_t>(pad) + 1, 'y').c_str()})},
                     {raw_tensor<float>("w", 1, {kCount}, values)},
                     {},
                     {value_info("y", 1, {kCount})}}));
    ASSERT_TRUE(write_file_atomically(path_, std::as_bytes(std::span(bytes))));
    for (const bool is_file : {true, false}) {
      const Result<Model> read = is_file ? read_model_file(path_) : read_model(std::as_bytes(std::span(bytes)));
      ASSERT_TRUE(read) << read.error().to_string();
      const TensorData& data = read->graph.initializers[0];
      const bool is_askew = reinterpret_cast<uintptr_t>(data.bytes.data()) % sizeof(float) != 0;
      const Tensor tensor = to_tensor(data).value();
      EXPECT_EQ(tensor.as<float>()[kMiddle], 3);
      UnreadCopies unread({read->copies});
      unread.forget();
      EXPECT_EQ(tensor.as<float>()[kMiddle], is_file && is_askew ? 0 : 3) << pad << is_file;
    }
  }
}

}  // namespace
}  // namespace lathe::onnx
