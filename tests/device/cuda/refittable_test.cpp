// SPDX-License-Identifier: Apache-2.0
// Refits of constants on a GPU: what fails before they are put in place leaves them as they were.
#include "runtime/refittable.h"

#include <algorithm>

#include "fake_cuda/fake_device.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kLarge = 300'000, kSmall = 5'000;

class RefittableTest : public FakeDeviceTest {
 protected:
  // Two constants of f16 that follow from weights of f32, one between them that stays, and weights as they are.
  void SetUp() override {
    FakeDeviceTest::SetUp();
    device_ = *open_device(0);
    plan_.refit.kind = plan::RefitKind::all;
    for (const int64_t size : {kLarge, kSmall})
      plan_.refit.weights.push_back({"w", DType::f32, {size}, {}, {}, {}, false, "", false});
    plan_.refit.steps = {{"cast", "{to=f16}", {}, {0}, 1}, {"cast", "{to=f16}", {}, {1}, 1}};
    const auto add = [&](uint64_t bytes, uint32_t derived) {
      plan_.constants.push_back({"c", contents_.size(), bytes, {}, derived, false});
      contents_.resize(contents_.size() + bytes, std::byte{1});
    };
    add(2 * kSmall, 1 + 3);
    add(2 * kLarge, 1 + 2);
    add(100, 0);
    add(4 * kSmall, 1 + 1);
    plan_.weights = contents_;
    Result<std::unique_ptr<Refittable>> made = Refittable::create(plan_, device_);
    ASSERT_OK(made);
    refittable_ = *std::move(made);
  }
  void TearDown() override {
    refittable_.reset();
    device_.reset();
    FakeDeviceTest::TearDown();
  }

  // No two neighbours are equal, so that parts that go elsewhere are seen.
  static float element(int64_t i, float number) { return number + static_cast<float>(i % 1009); }
  static std::vector<Tensor> weights(float number) {
    std::vector<Tensor> weights;
    for (const int64_t size : {kLarge, kSmall}) {
      weights.push_back(*Tensor::allocate(DType::f32, {size}));
      for (int64_t i = 0; i < size; ++i) weights.back().mutable_as<float>()[i] = element(i, number);
    }
    return weights;
  }
  Result<> refit(const std::vector<Tensor>& weights, RangeCheck check = RangeCheck::on) {
    return refittable_->refit(weights, check, 1);
  }
  void expect_holds(float number) {
    const auto all = [&](auto zero, int64_t count) {
      std::vector<decltype(zero)> elements;
      for (int64_t i = 0; i < count; ++i) elements.emplace_back(element(i, number));
      const std::span<const std::byte> bytes = std::as_bytes(std::span(elements));
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    EXPECT_TRUE(*refittable_->read(0) == all(Half(), kSmall));
    EXPECT_TRUE(*refittable_->read(1) == all(Half(), kLarge));
    EXPECT_TRUE(*refittable_->read(2) == std::vector(100, std::byte{1}));
    EXPECT_TRUE(*refittable_->read(3) == all(0.0F, kSmall));
  }

  std::shared_ptr<Device> device_;
  plan::Plan plan_;
  std::vector<std::byte> contents_;
  std::unique_ptr<Refittable> refittable_;
};

TEST_F(RefittableTest, TakesNewWeightsAgainAndAgain) {
  for (const float number : {1.5F, -2.0F, 0.1F}) {
    ASSERT_OK(refit(weights(number)));
    expect_holds(number);
  }
}

// Memory for both is asked for once, and taken back.
TEST_F(RefittableTest, ADeviceWithoutRoomForBothIsRefittedInPlace) {
  ASSERT_OK(refit(weights(3)));
  const size_t before = fake_cuda_allocated_bytes(0);
  for (const float number : {1.5F, -2.0F}) {
    const size_t failures = fake_cuda_failures();
    fake_cuda_fail("cuMemAllocAsync", 1, CUDA_ERROR_OUT_OF_MEMORY, 0);
    ASSERT_OK(refit(weights(number)));
    EXPECT_EQ(fake_cuda_failures(), failures + 1);
    expect_holds(number);
    EXPECT_EQ(fake_cuda_allocated_bytes(0), before);
  }
}

TEST_F(RefittableTest, NumbersOutOfRangeLeaveTheConstantsAsTheyWere) {
  ASSERT_OK(refit(weights(1.5F)));
  std::vector<Tensor> large = weights(2);
  large[0].mutable_as<float>()[kLarge - 1] = 70000;
  for (const bool has_room : {true, false}) {
    if (!has_room) fake_cuda_fail("cuMemAllocAsync", 1, CUDA_ERROR_OUT_OF_MEMORY, 0);
    const Result<> refused = refit(large);
    EXPECT_FAILS(refused, invalid_argument);
    EXPECT_NE(refused.error().message.find("70000 is out of the range of f16"), std::string::npos)
        << refused.error().message;
    expect_holds(1.5F);
  }
  ASSERT_OK(refit(large, RangeCheck::off));
  ASSERT_OK(refit(weights(2)));
  expect_holds(2);
}

// A failure of a call before the constants are put in place, by the last two copies, leaves them as they were. After
// one of a later call they are missing until they are given again.
TEST_F(RefittableTest, FailuresOfTheDevice) {
  ASSERT_OK(refit(weights(1.5F)));
  const size_t first = fake_cuda_calls();
  ASSERT_OK(refit(weights(1.5F)));
  std::vector<std::string> calls;
  for (size_t i = first; i < fake_cuda_calls(); ++i) calls.emplace_back(fake_cuda_call(i));
  size_t in_place = calls.size(), copies = 0, missing = 0;
  while (copies < 2) copies += calls[--in_place] == "cuMemcpyAsync";
  while (calls[in_place] != "cuCtxPushCurrent_v2") --in_place;  // with which the first begins
  for (size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(fmt::format("{} {}", i, calls[i]));
    fake_cuda_fail(nullptr, i + 1, CUDA_ERROR_OUT_OF_MEMORY, 0);
    const Result<> result = refit(weights(2));
    if (result) {  // the call's result means nothing, or there is another way
      expect_holds(2);
    } else if (i < in_place) {
      ASSERT_TRUE(refittable_->is_complete());
      expect_holds(1.5F);
    } else if (!refittable_->is_complete()) {
      EXPECT_FAILS(refittable_->use(), invalid_state);
      ++missing;
    }
    ASSERT_OK(refit(weights(1.5F)));
    expect_holds(1.5F);
  }
  EXPECT_GT(missing, 0u);
}

}  // namespace
}  // namespace lathe::cuda
