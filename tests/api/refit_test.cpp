// SPDX-License-Identifier: Apache-2.0
// Weights that are replaced: a refit gives the bits of a build from the new weights, all or nothing.
#include "api/refit_world.h"

#include <cmath>
#include <thread>

namespace nvinfer1::refits {
namespace {

using lathe::DType;

struct Case {
  const char* name;
  ModelForm form;
  DataType precision;
};

class RefitCases : public RefitTest, public testing::WithParamInterface<Case> {};

TEST_P(RefitCases, GiveTheBitsOfABuildFromTheNewWeights) {
  const auto& [name, form, precision] = GetParam();
  const auto first = build(model(form, 1), {BuilderFlag::kREFIT}, precision);
  const auto second = build(model(form, 2), {BuilderFlag::kREFIT}, precision);
  ASSERT_TRUE(first && second) << logger.last();
  const auto before = run(*first, form.type), after = run(*second, form.type);
  ASSERT_FALSE(before.empty());
  ASSERT_NE(before, after);
  const auto engine = load(*first);
  EXPECT_TRUE(engine->isRefittable());
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  EXPECT_EQ(run(*context, form.type), before);
  EXPECT_TRUE(refit_from(*engine, model(form, 2))) << logger.last();
  EXPECT_EQ(run(*context, form.type), after);  // of a context that was there before
  EXPECT_TRUE(refit_from(*engine, model(form, 1)));
  EXPECT_EQ(run(*context, form.type), before);
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

// Folding is put off for none: without the flag a plan computes the same numbers, to rounding.
TEST_P(RefitCases, AgreeWithAPlanWhoseWeightsStay) {
  const auto& [name, form, precision] = GetParam();
  const auto refittable = build(model(form, 3), {BuilderFlag::kREFIT}, precision);
  const auto plain = build(model(form, 3), {}, precision);
  ASSERT_TRUE(refittable && plain);
  EXPECT_FALSE(load(*plain)->isRefittable());
  const auto a = run(*refittable, form.type), b = run(*plain, form.type);
  ASSERT_EQ(a.size(), b.size());
  const lathe::Dims dims = {kBatch, kClasses};
  const auto x = lathe::to_doubles(lathe::Tensor::view(form.type, dims, a.data(), nullptr));
  const auto y = lathe::to_doubles(lathe::Tensor::view(form.type, dims, b.data(), nullptr));
  double largest = 0;
  for (const double value : y) largest = std::max(largest, std::fabs(value));
  const bool is_narrow = form.type == DType::f16 || precision != DataType::kFLOAT;
  const double tolerance = largest * (is_narrow ? 1e-2 : on_gpu() ? 2e-3 /* TF32 */ : 1e-5);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], tolerance);
}

// A stripped plan and the model are the full engine.
TEST_P(RefitCases, MakeAFullEngineOfAStrippedPlanAndItsModel) {
  const auto& [name, form, precision] = GetParam();
  const auto full = build(model(form, 1), {BuilderFlag::kREFIT_IDENTICAL}, precision);
  const auto stripped = build(model(form, 1), {BuilderFlag::kSTRIP_PLAN}, precision);
  ASSERT_TRUE(full && stripped) << logger.last();
  EXPECT_LT(stripped->size() + 2 * kClasses * kMaps * kSide * kSide, full->size());  // in f16, at least
  const auto engine = load(*stripped);
  EXPECT_TRUE(run(*engine, form.type).empty());
  expect_report({"LATHE-9002", "'conv.w'", "'bn.mean'", "'fc.w'", "refitCudaEngine"});
  EXPECT_TRUE(refit_from(*engine, model(form, 1))) << logger.last();
  EXPECT_EQ(run(*engine, form.type), run(*full, form.type));
  const std::unique_ptr<IHostMemory> whole(engine->serialize());
  ASSERT_NE(whole, nullptr) << logger.last();
  EXPECT_EQ(run(*whole, form.type), run(*full, form.type));
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

INSTANTIATE_TEST_SUITE_P(All, RefitCases,
                         testing::Values(Case{"f32", {}, DataType::kFLOAT},
                                         Case{"f32_open", {DType::f32, Batch::open}, DataType::kFLOAT},
                                         Case{"f16", {DType::f16, Batch::fixed}, DataType::kFLOAT},
                                         Case{"f16_open", {DType::f16, Batch::open}, DataType::kFLOAT},
                                         Case{"to_f16", {}, DataType::kHALF},
                                         Case{"to_f16_open", {DType::f32, Batch::open}, DataType::kHALF}),
                         [](const auto& info) { return std::string(info.param.name); });

class Refit : public RefitTest {
 protected:
  ModelForm form;
  std::unique_ptr<ICudaEngine> engine_with(std::vector<BuilderFlag> flags, uint32_t seed = 1) {
    const auto plan = build(model(form, seed), std::move(flags));
    EXPECT_NE(plan, nullptr) << logger.last();
    return plan ? load(*plan) : nullptr;
  }
  static std::vector<std::string> names(IRefitter& refitter, int32_t (IRefitter::*list)(int32_t, const char**)) {
    std::vector<const char*> names(static_cast<size_t>((refitter.*list)(0, nullptr)));
    (refitter.*list)(static_cast<int32_t>(names.size()), names.data());
    return {names.begin(), names.end()};
  }
  static std::vector<std::string> missing(IRefitter& refitter) {
    return names(refitter,
                 reinterpret_cast<int32_t (IRefitter::*)(int32_t, const char**)>(&IRefitter::getMissingWeights));
  }
};

TEST_F(Refit, ListsWhatGoesIntoTheSameConstants) {
  const auto engine = engine_with({BuilderFlag::kREFIT});
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  EXPECT_EQ(refitter->getAllWeights(0, nullptr), 8);  // not the single number
  EXPECT_EQ(refitter->getMissingWeights(0, nullptr), 0);
  const auto before = run(*engine, form.type);
  const auto weights = weights_of(form, 2);
  ASSERT_TRUE(refitter->setNamedWeights("conv.w", as_weights(weights[0].second))) << logger.last();
  const std::vector<std::string> lacking = missing(*refitter);
  EXPECT_EQ(lacking, (std::vector<std::string>{"bn.scale", "bn.var"}));  // the folded weights; its bias is another
  EXPECT_FALSE(refitter->refitCudaEngine());
  expect_report({"LATHE-9002", "'bn.scale'", "'bn.var'", "getMissingWeights"});
  EXPECT_EQ(run(*engine, form.type), before);  // nothing was changed
  ASSERT_TRUE(refitter->unsetNamedWeights("conv.w"));
  ASSERT_TRUE(refitter->setNamedWeights("fc.w", as_weights(weights[6].second)));
  EXPECT_TRUE(missing(*refitter).empty());
  EXPECT_TRUE(refitter->refitCudaEngine()) << logger.last();
  EXPECT_NE(run(*engine, form.type), before);
}

TEST_F(Refit, TellsWhatItExpectsAndWhatItWasGiven) {
  const auto engine = engine_with({BuilderFlag::kREFIT});
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  const Weights prototype = refitter->getWeightsPrototype("conv.w");
  EXPECT_EQ(prototype.count, kMaps * kChannels * 9);
  EXPECT_EQ(prototype.type, DataType::kFLOAT);
  EXPECT_EQ(prototype.values, nullptr);
  EXPECT_EQ(refitter->getNamedWeights("conv.w").values, nullptr);
  const auto weights = weights_of(form, 2);
  EXPECT_TRUE(refitter->setNamedWeights("conv.w", as_weights(weights[0].second), TensorLocation::kHOST));
  EXPECT_EQ(refitter->getNamedWeights("conv.w").values, weights[0].second.data());
  EXPECT_EQ(refitter->getWeightsLocation("conv.w"), TensorLocation::kHOST);
  EXPECT_TRUE(refitter->setMaxThreads(3));
  EXPECT_EQ(refitter->getMaxThreads(), 3);
  refitter->setWeightsValidation(false);
  EXPECT_FALSE(refitter->getWeightsValidation());
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

TEST_F(Refit, RefusesWhatDoesNotFit) {
  const auto engine = engine_with({BuilderFlag::kREFIT});
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  const auto weights = weights_of(form, 2);
  const Weights good = as_weights(weights[0].second);
  EXPECT_FALSE(refitter->setNamedWeights("nobody", good));
  expect_report({"LATHE-9001", "'nobody'", "getAllWeights"});
  EXPECT_FALSE(refitter->setNamedWeights("half", good));
  expect_report({"LATHE-9001", "'half'", "cannot be replaced"});
  EXPECT_FALSE(refitter->setNamedWeights("conv.w", {good.type, good.values, good.count - 1}));
  expect_report({"LATHE-9001", "540", "539"});
  EXPECT_FALSE(refitter->setNamedWeights("conv.w", {DataType::kHALF, good.values, good.count}));
  expect_report({"LATHE-9001", "f32", "f16"});
  EXPECT_FALSE(refitter->setNamedWeights("conv.w", {good.type, nullptr, good.count}));
  expect_report({"LATHE-9001", "null"});
  EXPECT_FALSE(refitter->setNamedWeights("conv.w", good, static_cast<TensorLocation>(9)));
  expect_report({"LATHE-9001", "9"});
  EXPECT_FALSE(refitter->unsetNamedWeights("conv.w"));
  expect_report({"LATHE-9002", "'conv.w'"});
  EXPECT_FALSE(refitter->setWeights("conv.w", WeightsRole::kKERNEL, good));
  expect_report({"LATHE-9001", "getAll"});
  EXPECT_FALSE(refitter->setMaxThreads(0));
  expect_report({"LATHE-9001"});
  EXPECT_EQ(refitter->getAllWeights(2, nullptr), 0);
  expect_report({"LATHE-9001"});
  EXPECT_TRUE(refitter->refitCudaEngine()) << logger.last();  // of nothing
}

TEST_F(Refit, OfAModelThatDiffersInMoreThanWeightsIsRefused) {
  const auto engine = engine_with({BuilderFlag::kREFIT});
  const auto before = run(*engine, form.type);
  ModelForm other = form;
  other.scale = 0.25f;
  EXPECT_FALSE(refit_from(*engine, model(other, 2)));
  expect_report({"LATHE-9001", "'half'", "optimised"});
  other = form;
  other.type = DType::f16;
  EXPECT_FALSE(refit_from(*engine, model(other, 2)));
  expect_report({"LATHE-9001", "'conv.w'", "f16"});
  const std::string tiny = lathe::onnx::small_model();
  EXPECT_FALSE(refit_from(*engine, tiny));
  expect_report({"LATHE-"});
  EXPECT_EQ(run(*engine, form.type), before);
}

// A model that is refused leaves nothing behind that a refit would take.
TEST_F(Refit, AModelIsTakenWholeOrNotAtAll) {
  const auto engine = engine_with({BuilderFlag::kREFIT});
  const auto before = run(*engine, form.type);
  ModelForm other = form;
  other.scale = 0.25f;
  const std::string refused = model(other, 2);
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  const std::unique_ptr<nvonnxparser::IParserRefitter> parser(nvonnxparser::createParserRefitter(*refitter, logger));
  EXPECT_FALSE(parser->refitFromBytes(refused.data(), refused.size()));
  EXPECT_TRUE(refitter->refitCudaEngine());
  EXPECT_EQ(run(*engine, form.type), before);
}

// What the application added is not asked of the model, and what it renamed is found.
TEST_F(Refit, FromTheModelOfANetworkThatTheApplicationChanged) {
  const float two[kClasses] = {2, 2, 2, 2, 2};
  const auto changed = [&](uint32_t seed) {
    change = [&](INetworkDefinition& network) {
      ITensor* const y = network.getOutput(0);
      network.unmarkOutput(*y);
      IConstantLayer* const factor = network.addConstant(Dims2(1, kClasses), {DataType::kFLOAT, two, kClasses});
      ITensor* const product =
          network.addElementWise(*y, *factor->getOutput(0), ElementWiseOperation::kPROD)->getOutput(0);
      y->setName("before");
      product->setName("y");
      network.markOutput(*product);
      for (int32_t i = 0; i < network.getNbLayers(); ++i)
        if (auto* const constant = dynamic_cast<IConstantLayer*>(network.getLayer(i));
            constant && std::string_view(constant->getName()) == "conv.b") {
          EXPECT_TRUE(network.setWeightsName(constant->getWeights(), "renamed")) << logger.last();
        }
    };
    return load(*build(model(form, seed), {BuilderFlag::kREFIT}));
  };
  const auto engine = changed(1), wanted = changed(2);
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  EXPECT_EQ(refitter->getWeightsPrototype("renamed").count, kMaps) << logger.last();
  EXPECT_TRUE(refit_from(*engine, model(form, 2))) << logger.last();
  EXPECT_EQ(run(*engine, form.type), run(*wanted, form.type));
}

// Constants of equal bytes are one in a plan unless they follow from weights.
TEST_F(Refit, OfMarkedWeightsThatEqualFixedOnes) {
  marked = {"conv.b"};
  form.equal = true;
  const auto plan = build(model(form, 1), {BuilderFlag::kREFIT_INDIVIDUAL});
  ASSERT_NE(plan, nullptr) << logger.last();
  const auto engine = load(*plan);
  const std::vector<float> biases(kMaps, 1.0f);
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  const auto before = run(*engine, form.type);
  EXPECT_TRUE(refitter->setNamedWeights("conv.b", {DataType::kFLOAT, biases.data(), kMaps})) << logger.last();
  EXPECT_TRUE(refitter->refitCudaEngine()) << logger.last();
  EXPECT_NE(run(*engine, form.type), before);
}

TEST_F(Refit, OneBufferMayBeSeveralWeights) {
  std::vector<float> buffer(2 * kClasses, 3.0f);
  change = [&](INetworkDefinition& network) {
    ITensor* const y = network.getOutput(0);
    network.unmarkOutput(*y);
    y->setName("before");
    const Weights whole{DataType::kFLOAT, buffer.data(), 2 * kClasses}, half{DataType::kFLOAT, buffer.data(), kClasses};
    EXPECT_TRUE(network.setWeightsName(whole, "whole"));
    EXPECT_TRUE(network.setWeightsName(half, "half of it"));
    ITensor* const two = network.addConstant(Dims2(kBatch, kClasses), whole)->getOutput(0);
    ITensor* const one = network.addConstant(Dims2(1, kClasses), half)->getOutput(0);
    ITensor* const sum = network.addElementWise(*y, *two, ElementWiseOperation::kSUM)->getOutput(0);
    ITensor* const product = network.addElementWise(*sum, *one, ElementWiseOperation::kPROD)->getOutput(0);
    product->setName("y");
    network.markOutput(*product);
  };
  const auto plan = build(model(form, 1), {BuilderFlag::kREFIT});
  ASSERT_NE(plan, nullptr) << logger.last();
  const auto engine = load(*plan);
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  EXPECT_EQ(refitter->getWeightsPrototype("whole").count, 2 * kClasses);
  EXPECT_EQ(refitter->getWeightsPrototype("half of it").count, kClasses);
}

TEST_F(Refit, FromAModelInPieces) {
  const auto engine = engine_with({BuilderFlag::kREFIT});
  const auto wanted = run(*engine_with({BuilderFlag::kREFIT}, 2), form.type);
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  const std::unique_ptr<nvonnxparser::IParserRefitter> parser(nvonnxparser::createParserRefitter(*refitter, logger));
  const std::string first = model(form, 1);
  const auto weights = weights_of(form, 2);
  ASSERT_TRUE(parser->loadModelProto(first.data(), first.size())) << logger.last();
  for (const auto& [name, tensor] : weights)
    EXPECT_TRUE(parser->loadInitializer(name.c_str(), tensor.data(), tensor.bytes())) << logger.last();
  EXPECT_FALSE(parser->loadInitializer("nobody", weights[0].second.data(), 4));
  ASSERT_EQ(parser->getNbErrors(), 1);
  EXPECT_EQ(parser->getError(0)->code(), nvonnxparser::ErrorCode::kREFIT_FAILED);
  logger.text.clear();
  EXPECT_TRUE(parser->refitModelProto());
  EXPECT_TRUE(refitter->refitCudaEngine()) << logger.last();
  EXPECT_EQ(run(*engine, form.type), wanted);
}

TEST_F(Refit, WithIdenticalWeightsTakesNoOthers) {
  const auto engine = engine_with({BuilderFlag::kREFIT_IDENTICAL});
  EXPECT_TRUE(engine->isRefittable());
  const auto before = run(*engine, form.type);
  EXPECT_FALSE(refit_from(*engine, model(form, 2)));
  expect_report({"LATHE-9001", "'conv.w'", "kREFIT_IDENTICAL"});
  EXPECT_TRUE(refit_from(*engine, model(form, 1))) << logger.last();
  EXPECT_EQ(run(*engine, form.type), before);
}

TEST_F(Refit, OfMarkedWeightsLeavesTheOthers) {
  marked = {"fc.w", "bn.bias"};
  const auto plan = build(model(form, 1), {BuilderFlag::kREFIT_INDIVIDUAL, BuilderFlag::kSTRIP_PLAN});
  ASSERT_NE(plan, nullptr) << logger.last();
  const auto engine = load(*plan);
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  EXPECT_EQ(refitter->getAllWeights(0, nullptr), 2);
  EXPECT_EQ(missing(*refitter).size(), 2u);  // the plan has the others
  const auto old = weights_of(form, 1);
  EXPECT_FALSE(refitter->setNamedWeights("conv.w", as_weights(old[0].second)));
  expect_report({"'conv.w'", "kREFIT_INDIVIDUAL"});
  EXPECT_TRUE(refitter->setNamedWeights("fc.w", as_weights(old[6].second)));
  EXPECT_TRUE(refitter->setNamedWeights("bn.bias", as_weights(old[3].second)));
  EXPECT_TRUE(refitter->refitCudaEngine()) << logger.last();
  marked.clear();
  EXPECT_EQ(run(*engine, form.type), run(*engine_with({BuilderFlag::kREFIT}), form.type));
}

TEST_F(Refit, FlagsThatContradictAreRefused) {
  EXPECT_EQ(build(model(form, 1), {BuilderFlag::kREFIT, BuilderFlag::kREFIT_IDENTICAL}), nullptr);
  expect_report({"LATHE-3002", "kREFIT_IDENTICAL"});
}

// S107, S108, S110: sizes with and without weights.
TEST_F(Refit, SizesOfStrippedWeightsAreTold) {
  const auto full = build(model(form, 1), {BuilderFlag::kREFIT});
  const auto stripped = build(model(form, 1), {BuilderFlag::kREFIT, BuilderFlag::kSTRIP_PLAN});
  const auto engine = load(*full), light = load(*stripped);
  EXPECT_EQ(engine->getEngineStat(EngineStat::kSTRIPPED_WEIGHTS_SIZE), -1);
  const int64_t left_out = light->getEngineStat(EngineStat::kSTRIPPED_WEIGHTS_SIZE);
  EXPECT_GT(left_out, 4 * (kClasses * kMaps * kSide * kSide + kMaps * kChannels * 9));
  const int64_t saved = static_cast<int64_t>(full->size()) - static_cast<int64_t>(stripped->size());
  EXPECT_NEAR(static_cast<double>(left_out), static_cast<double>(saved), 8192);  // sections begin on pages
  const int64_t total = engine->getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE);
  EXPECT_NEAR(static_cast<double>(light->getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE)), static_cast<double>(total),
              1024);  // gaps between constants
}

TEST_F(Refit, IsServedOrNotByWhatIsSerialized) {
  const auto engine = engine_with({BuilderFlag::kREFIT});
  ASSERT_TRUE(refit_from(*engine, model(form, 2)));
  const auto wanted = run(*engine, form.type);
  const std::unique_ptr<ISerializationConfig> config(engine->createSerializationConfig());
  const std::unique_ptr<IHostMemory> fixed(engine->serializeWithConfig(*config));
  EXPECT_FALSE(load(*fixed)->isRefittable());
  EXPECT_EQ(run(*fixed, form.type), wanted);
  ASSERT_TRUE(config->setFlag(SerializationFlag::kINCLUDE_REFIT)) << logger.last();
  const std::unique_ptr<IHostMemory> kept(engine->serializeWithConfig(*config));
  EXPECT_TRUE(load(*kept)->isRefittable());
  EXPECT_EQ(run(*kept, form.type), wanted);
  ASSERT_TRUE(config->setFlag(SerializationFlag::kEXCLUDE_WEIGHTS)) << logger.last();
  const std::unique_ptr<IHostMemory> light(engine->serializeWithConfig(*config));
  EXPECT_LT(light->size(), kept->size());
  const auto other = load(*light);
  EXPECT_TRUE(run(*other, form.type).empty());
  logger.text.clear();
  EXPECT_EQ(other->serializeWithConfig(*std::unique_ptr<ISerializationConfig>(other->createSerializationConfig())),
            nullptr);
  expect_report({"LATHE-9002", "kINCLUDE_REFIT"});
  EXPECT_TRUE(refit_from(*other, model(form, 2)));
  EXPECT_EQ(run(*other, form.type), wanted);
}

// S156, S158: runs that go on while two refitters work see the weights of one of them, whole.
TEST_F(Refit, NeverTearsWeights) {
  const auto engine = engine_with({BuilderFlag::kREFIT});
  const auto first = run(*engine, form.type), second = run(*engine_with({BuilderFlag::kREFIT}, 2), form.type);
  ASSERT_NE(first, second);
  std::atomic<int> refits_left = 2, torn = 0, runs = 0;
  const auto refit = [&](uint32_t seed) {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(refit_from(*engine, model(form, seed)));
    --refits_left;
  };
  const auto work = [&] {
    const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    while (refits_left > 0 || runs < 20) {
      const auto y = run(*context, form.type);
      torn += y != first && y != second;
      ++runs;
    }
  };
  std::thread threads[] = {std::thread(refit, 1), std::thread(refit, 2), std::thread(work), std::thread(work)};
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

// On CPUs weights are f32 whatever the model's type.
TEST_F(Refit, OfNumbersThatTheEnginesTypeCannotHoldIsRefused) {
  if (!on_gpu()) GTEST_SKIP() << "the target computes in f32";
  const auto plan = build(model(form, 1), {BuilderFlag::kREFIT}, DataType::kHALF);
  const auto engine = load(*plan);
  const auto before = run(*engine, form.type);
  ModelForm large = form;
  large.largest = 1e6f;
  EXPECT_FALSE(refit_from(*engine, model(large, 2)));
  expect_report({"LATHE-9001", "f16", "setWeightsValidation"});
  EXPECT_EQ(run(*engine, form.type), before);
}

}  // namespace
}  // namespace nvinfer1::refits
