// SPDX-License-Identifier: Apache-2.0
// New contents of constants reach the device whole, in whichever pieces they go, packed by the host or by the device.
#include "runtime/upload_constants.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "device/cuda/nvrtc_compiler.h"
#include "fake_cuda/fake_device.h"
#include "kernels/cuda/headers.h"
#include "kernels/cuda/packing/packing_source.h"
#include "ops/pack_bytes.h"
#include "ops/rules.h"

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

  // By the kernel that plans carry, by what stands in for NVRTC and for a GPU.
  void pack_by_device(ConstantUploader& uploader) {
    CompilerOptions options;
    options.nvrtc = {FAKE_NVRTC};
    const auto compiler = NvrtcCompiler::create(device_->target(), headers(), options, "");
    ASSERT_OK(compiler);
    const Result<std::vector<std::byte>> code = (*compiler)->compile(packing_source());
    ASSERT_OK(code);
    const std::span<const std::byte> modules[] = {*code};
    auto kernel = make_packing_kernel(*device_, modules, 0);
    ASSERT_OK(kernel);
    uploader.set_packing(*std::move(kernel));
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
    if (!elements.steps().empty())
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
    const uint64_t scratch = uploader.scratch_bytes(places);
    const Result<DeviceMemory> memory = device_->allocate(end + scratch);
    std::byte* to = memory->data();
    for (size_t i = 0; i < places.size(); ++i) {
      ConstantPlacer::Place& place = places[order == Order::same ? i : places.size() - 1 - i];
      place.to = to;
      to += (place.bytes + 63) / 64 * 64;
    }
    Uploaded result{uploader.run(places, check, 1, scratch > 0 ? to : nullptr), {}};
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

  // As they are and computed, smaller and larger than a buffer, packed with zeros in between.
  void expect_constants_of_all_kinds(ConstantUploader& uploader) {
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
    for (const Order order : {Order::same, Order::backwards})
      expect_uploads(uploader,
                     {plain(7), plain(3'000'001), small(5'000'003), plain(1500, &swapped), small(2000, &spread),
                      plain(3'000'000, &large), small(3'000'000, &large), plain(2000, &spread), small(1), plain(1)},
                     order);
  }

  std::shared_ptr<Device> device_;
};

size_t calls_of(std::string_view function) {
  size_t calls = 0;
  for (size_t i = 0; i < fake_cuda_calls(); ++i) calls += fake_cuda_call(i) == function;
  return calls;
}

TEST_F(UploadTest, ConstantsOfAllKinds) {
  ConstantUploader uploader(*device_);
  expect_constants_of_all_kinds(uploader);
}

// Where the device packs, what the host packs, too, is the same: bits of all sizes, numbers that join in for each
// channel by each operation, types that hold more and less, boxes of many axes and of one element.
TEST_F(UploadTest, TheDevicePacks) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  const auto filled = [&](DType type, int64_t count) {
    std::vector<double> values(static_cast<size_t>(count));
    for (double& value : values) value = normal(random) * std::exp(4 * normal(random));
    values[0] = std::numeric_limits<double>::infinity();
    values.back() = -0.0;
    Tensor tensor = *Tensor::allocate(type, {count});
    from_doubles(values, tensor);
    return tensor;
  };
  const auto step = [&](ElementwiseOp op, int64_t inner, int64_t size, DType type) {
    Tensor numbers = filled(DType::f64, size);
    numbers.mutable_as<double>()[0] = 3.7;  // nothing becomes NaN, whose bits are any
    numbers.mutable_as<double>()[size - 1] = -0.3;
    return ChannelStep{op, std::move(numbers), inner, type};
  };
  const auto cast = [](DType type) { return ChannelStep{std::nullopt, {}, 1, type}; };
  // 24 x 5 x 3 x 7 to 3 x 7 x 24 x 5, in two boxes, and backwards.
  const Packing halves{{2520},
                       {{0, 0, {12, 5, 3, 7}, {105, 21, 7, 1}, {5, 1, 840, 120}},
                        {1260, 60, {12, 5, 3, 7}, {105, 21, 7, 1}, {5, 1, 840, 120}}}};
  const Packing reversed{{2520}, {{2519, 0, {2520}, {-1}, {1}}}};
  const Packing one{{1}, {{17, 0, {1}, {1}, {1}}}};
  const Packing repeated{{2, 2520}, {{0, 0, {2, 2520}, {0, 1}, {2520, 1}}}};
  std::vector<ConstantContent> contents;
  for (const Packing* const packing : {&halves, &reversed, &one, &repeated}) {
    for (const DType type : {DType::u8, DType::f16, DType::f32, DType::i64})
      contents.push_back({ChannelArithmetic(filled(type, 2520)), packing});
    for (const DType from : {DType::f16, DType::bf16, DType::f32, DType::f64})
      for (const DType to : {DType::f16, DType::bf16, DType::f32, DType::f64})
        contents.push_back({ChannelArithmetic(filled(from, 2520), {cast(to)}), packing});
    for (const ElementwiseOp op : {ElementwiseOp::add, ElementwiseOp::sub, ElementwiseOp::mul, ElementwiseOp::div})
      contents.push_back({ChannelArithmetic(filled(DType::f32, 2520),
                                            {cast(DType::f64), step(op, 105, 24, DType::f64), cast(DType::f32),
                                             step(op, 1, 7, DType::f32), cast(DType::bf16)}),
                          packing});
  }
  ConstantUploader uploader(*device_);
  ASSERT_NO_FATAL_FAILURE(pack_by_device(uploader));
  const size_t before = calls_of("cuLaunchKernelEx");
  for (const Order order : {Order::same, Order::backwards}) {
    const Uploaded uploaded = upload(uploader, contents, RangeCheck::off, order);
    ASSERT_OK(uploaded.found);
    for (size_t i = 0; i < contents.size(); ++i)
      EXPECT_TRUE(uploaded.bytes[i] == evaluated(contents[i])) << "constant " << i;
  }
  EXPECT_EQ(calls_of("cuLaunchKernelEx") - before, 2u);  // one for all that a buffer holds
}

TEST_F(UploadTest, TheDevicePacksConstantsOfAllSizes) {
  ConstantUploader uploader(*device_);
  ASSERT_NO_FATAL_FAILURE(pack_by_device(uploader));
  expect_constants_of_all_kinds(uploader);
}

TEST_F(UploadTest, TheDeviceFindsNumbersOutOfRange) {
  ConstantUploader uploader(*device_);
  ASSERT_NO_FATAL_FAILURE(pack_by_device(uploader));
  const Packing swapped{{300, 5}, {{0, 0, {5, 300}, {300, 1}, {1, 5}}}};
  Tensor large = numbers(1500, 0);
  std::vector<ConstantContent> contents = {halves(numbers(1500, 7), &swapped), halves(large, &swapped)};
  expect_uploads(uploader, contents);
  for (const float number : {std::numeric_limits<float>::infinity(), 65519.0F}) {  // of which halves have the first
    large.mutable_as<float>()[1234] = number;
    expect_uploads(uploader, contents);
  }
  large.mutable_as<float>()[1234] = -65520;
  EXPECT_EQ(*upload(uploader, contents, RangeCheck::on).found, ConstantPlacer::Found::out_of_range);
  EXPECT_EQ(*upload(uploader, contents, RangeCheck::off).found, ConstantPlacer::Found::none);
  large.mutable_as<float>()[1234] = 0;
  expect_uploads(uploader, contents);  // what was found before is forgotten
  // What a folded factor makes too large is infinite, as in a build.
  Tensor factors = *Tensor::allocate(DType::f64, {5});
  std::fill_n(factors.mutable_as<double>(), 5, 1e38);
  const ChannelStep to_f64{std::nullopt, {}, 1, DType::f64}, to_f32{std::nullopt, {}, 1, DType::f32};
  expect_uploads(
      uploader, {{ChannelArithmetic(numbers(1500, 1), {to_f64, {ElementwiseOp::mul, factors, 300, DType::f64}, to_f32}),
                  &swapped}});
}

// Of zeros between elements, and of more than 64 MB, the host packs.
TEST_F(UploadTest, TheHostPacksWhatTheDeviceDoesNot) {
  ConstantUploader uploader(*device_);
  ASSERT_NO_FATAL_FAILURE(pack_by_device(uploader));
  const Packing spread{{400, 8}, {{0, 0, {400, 5}, {1, 400}, {8, 1}}}};
  const Packing large{{3000, 6000}, {{0, 0, {6000, 3000}, {3000, 1}, {1, 6000}}}};
  const size_t before = calls_of("cuLaunchKernelEx");
  expect_uploads(uploader, {{ChannelArithmetic(numbers(2000, 1)), &spread}});
  expect_uploads(uploader, {{ChannelArithmetic(numbers(18'000'000, 1)), &large}});
  EXPECT_EQ(calls_of("cuLaunchKernelEx"), before);
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

// Each call that can fail where the device packs.
TEST_F(UploadTest, FailuresWhereTheDevicePacks) {
  const Packing swapped{{300, 5}, {{0, 0, {5, 300}, {300, 1}, {1, 5}}}};
  const std::vector<ConstantContent> contents = {halves(numbers(1500, 1), &swapped)};
  const std::vector<std::pair<const char*, size_t>> calls = {
      {"cuMemHostAlloc", 2}, {"cuMemcpyAsync", 1},       {"cuMemcpyAsync", 2},       {"cuLaunchKernelEx", 1},
      {"cuStreamCreate", 1}, {"cuStreamSynchronize", 2}, {"cuMemcpyDtoHAsync_v2", 1}};
  for (const auto& [function, nth] : calls) {
    SCOPED_TRACE(fmt::format("{} {}", function, nth));
    ConstantUploader uploader(*device_);
    ASSERT_NO_FATAL_FAILURE(pack_by_device(uploader));
    ConstantPlacer::Place place{contents.data(), nullptr, 3000};
    const Result<DeviceMemory> memory = device_->allocate(3008 + uploader.scratch_bytes({&place, 1}));
    place.to = memory->data();
    const size_t before = fake_cuda_failures();
    fake_cuda_fail(function, nth, CUDA_ERROR_OUT_OF_MEMORY, 0);
    EXPECT_FAILS(uploader.run({&place, 1}, RangeCheck::on, 1, place.to + 3008), out_of_memory);
    EXPECT_EQ(fake_cuda_failures(), before + 1);
    expect_uploads(uploader, contents);
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
