// SPDX-License-Identifier: Apache-2.0
// New contents of constants reach the device whole, in whichever pieces they go.
#include "runtime/upload_constants.h"

#include <algorithm>
#include <numeric>

#include "fake_cuda/fake_device.h"
#include "ops/pack_bytes.h"

namespace lathe::cuda {
namespace {

class UploadTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    Result<std::shared_ptr<Device>> device = open_device(0);
    ASSERT_OK(device);
    device_ = *device;
  }
  void TearDown() override {
    device_.reset();
    FakeDeviceTest::TearDown();
  }

  static Tensor numbers(int64_t count, float first) {
    Tensor tensor = *Tensor::allocate(DType::f32, {count});
    std::iota(tensor.mutable_as<float>(), tensor.mutable_as<float>() + count, first);
    return tensor;
  }
  static ConstantContent halves(Tensor source, const Packing* packing = nullptr) {
    CastAttrs cast;
    cast.to = DType::f16;
    return {ChannelArithmetic(std::move(source), {*ChannelStep::of_cast(DType::f32, cast)}), packing};
  }
  // What the device should hold.
  static std::vector<std::byte> evaluated(const ConstantContent& content) {
    const ChannelArithmetic& elements = content.elements;
    Tensor plain = *Tensor::allocate(elements.type(), {elements.volume()});
    if (elements.steps() > 0)
      elements.run(0, elements.volume(), plain.mutable_as<std::byte>());
    else
      std::ranges::copy(elements.source().raw(), plain.mutable_as<std::byte>());
    const Tensor result = content.packing ? *content.packing->apply(plain) : plain;
    return {result.raw().begin(), result.raw().end()};
  }

  struct Uploaded {
    Result<ConstantPlacer::Found> found;
    std::vector<std::vector<std::byte>> bytes;
  };
  enum class Order { same, backwards };  // of constants in the device's memory
  Uploaded upload(ConstantUploader& uploader, const std::vector<ConstantContent>& contents, RangeCheck check,
                  Order order = Order::same) {
    std::vector<ConstantPlacer::Place> places;
    uint64_t end = 0;
    for (const ConstantContent& content : contents) {
      const uint64_t bytes = evaluated(content).size();
      places.push_back({&content, nullptr, bytes});
      end += (bytes + 63) / 64 * 64;
    }
    const Result<DeviceMemory> memory = device_->allocate(end);
    std::byte* to = memory->data();
    for (size_t i = 0; i < places.size(); ++i) {
      ConstantPlacer::Place& place = places[order == Order::same ? i : places.size() - 1 - i];
      place.to = to;
      to += (place.bytes + 63) / 64 * 64;
    }
    Uploaded result{uploader.run(places, check, 1), {}};
    const std::unique_ptr<Queue> queue = *device_->make_queue();
    for (const ConstantPlacer::Place& place : places) {
      result.bytes.emplace_back(place.bytes);
      EXPECT_TRUE(device_->download(result.bytes.back().data(), place.to, place.bytes, *queue));
    }
    return result;
  }
  void expect_uploads(ConstantUploader& uploader, const std::vector<ConstantContent>& contents,
                      Order order = Order::same) {
    const Uploaded uploaded = upload(uploader, contents, RangeCheck::on, order);
    ASSERT_OK(uploaded.found);
    EXPECT_EQ(*uploaded.found, ConstantPlacer::Found::none);
    for (size_t i = 0; i < contents.size(); ++i)
      EXPECT_TRUE(uploaded.bytes[i] == evaluated(contents[i])) << "constant " << i;
  }

  std::shared_ptr<Device> device_;
};

size_t calls_of(std::string_view function) {
  size_t calls = 0;
  for (size_t i = 0; i < fake_cuda_calls(); ++i) calls += fake_cuda_call(i) == function;
  return calls;
}

// As they are and computed, smaller and larger than a buffer, packed with zeros in between.
TEST_F(UploadTest, ConstantsOfAllKinds) {
  const Packing swapped{{300, 5}, {{0, 0, {5, 300}, {300, 1}, {1, 5}}}};
  const Packing spread{{400, 8}, {{0, 0, {400, 5}, {1, 400}, {8, 1}}}};
  const Packing large{{1500, 2000}, {{0, 0, {2000, 1500}, {1500, 1}, {1, 2000}}}};
  const auto plain = [](int64_t count, const Packing* packing = nullptr) {
    return ConstantContent{ChannelArithmetic(numbers(count, 3)), packing};
  };
  const auto small = [](int64_t count, const Packing* packing = nullptr) {  // of magnitudes that halves hold
    Tensor source = numbers(count, 0);
    for (int64_t i = 0; i < count; ++i) source.mutable_as<float>()[i] = static_cast<float>(i % 1999) / 7;
    return halves(std::move(source), packing);
  };
  ConstantUploader uploader(*device_);
  for (const Order order : {Order::same, Order::backwards})
    expect_uploads(uploader,
                   {plain(7), plain(3'000'001), small(5'000'003), plain(1500, &swapped), small(2000, &spread),
                    plain(3'000'000, &large), small(3'000'000, &large), plain(2000, &spread), small(1), plain(1)},
                   order);
}

TEST_F(UploadTest, NeighboursGoTogether) {
  ConstantUploader uploader(*device_);
  std::vector<ConstantContent> contents;
  for (int i = 0; i < 100; ++i) contents.emplace_back(ChannelArithmetic(numbers(1000, static_cast<float>(i))));
  const size_t before = calls_of("cuMemcpyAsync");
  expect_uploads(uploader, contents);
  EXPECT_EQ(calls_of("cuMemcpyAsync") - before, 1u);
}

TEST_F(UploadTest, EndsAtNumbersOutOfRange) {
  Tensor large = numbers(5'000'000, 0);
  ConstantUploader uploader(*device_);
  const std::vector<ConstantContent> contents = {halves(large)};
  EXPECT_EQ(*upload(uploader, contents, RangeCheck::on).found, ConstantPlacer::Found::out_of_range);
  const Uploaded unchecked = upload(uploader, contents, RangeCheck::off);
  EXPECT_EQ(*unchecked.found, ConstantPlacer::Found::none);
  EXPECT_TRUE(unchecked.bytes[0] == evaluated(contents[0]));
}

// Of 12 MB by buffers that stay, of 48 MB by some that go again, of 96 MB by none.
TEST_F(UploadTest, LargePackedConstants) {
  const auto pinned = [] { return calls_of("cuMemHostAlloc") - calls_of("cuMemFreeHost"); };
  ConstantUploader uploader(*device_);
  expect_uploads(uploader, {ConstantContent{ChannelArithmetic(numbers(100, 1))}});
  EXPECT_EQ(pinned(), 2u);
  for (const int64_t columns : {1'000, 4'000, 8'000}) {
    const Packing large{{3000, columns}, {{0, 0, {columns, 3000}, {3000, 1}, {1, columns}}}};
    const size_t before = calls_of("cuMemHostAlloc");
    expect_uploads(uploader, {ConstantContent{ChannelArithmetic(numbers(3000 * columns, 1)), &large}});
    EXPECT_EQ(calls_of("cuMemHostAlloc") - before, 2u);
    EXPECT_EQ(pinned(), columns == 4'000 ? 0u : 2u) << columns;
  }
}

// Each call that can fail.
TEST_F(UploadTest, FailuresAreReportedAndTheNextUploadWorks) {
  const std::vector<ConstantContent> contents = {ConstantContent{ChannelArithmetic(numbers(5'000'000, 1))}};
  for (const char* const function : {"cuMemHostAlloc", "cuStreamCreate", "cuMemcpyAsync", "cuStreamSynchronize"})
    for (const size_t nth : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} {}", function, nth));
      ConstantUploader uploader(*device_);
      const Result<DeviceMemory> memory = device_->allocate(20'000'000);
      const ConstantPlacer::Place place{contents.data(), memory->data(), 20'000'000};
      const size_t before = fake_cuda_failures();
      fake_cuda_fail(function, nth, CUDA_ERROR_OUT_OF_MEMORY, 0);
      EXPECT_FAILS(uploader.run({&place, 1}, RangeCheck::on, 1), out_of_memory);
      EXPECT_EQ(fake_cuda_failures(), before + 1);
      expect_uploads(uploader, contents);
    }
}

}  // namespace
}  // namespace lathe::cuda
