// SPDX-License-Identifier: Apache-2.0
// A row for every setter of layers that find scales while running, and of mixtures of experts; x counts from -2.
#pragma once

#include <limits>

#include "api/layers_world.h"

namespace nvinfer1::layers {

// Two blocks of two elements.
inline void add_dynamic_quantization(Table& table) {
  add<IDynamicQuantizeLayer>(
      table, "IDynamicQuantizeLayer",
      [](Net& n) {
        return n.network->addDynamicQuantizeV2(n.constant(Dims2(1, 4), {4, 1, 0, -2}), Dims2(1, 2), DataType::kINT8,
                                               DataType::kFLOAT);
      },
      {{"setToType",
        DOES(setToType(DataType::kFP8), l.getToType() == DataType::kFP8),
        "f8e4m3fn[1, 4]: 448 112 0 -448; f32[1, 2]: 0.008929 0.004464",
        {CALL(setToType(DataType::kHALF)), CALL(setToType(no_such<DataType>())),
         CALL(setInput(0, n.shaped(Dims2(1, 4), {1, 2, 3, 4}))), CALL(setInput(1, n.numbers({1}))),
         CALL(setInput(1, n.constant(dims({2}), {1, 1}))), CALL(setInput(2, *l.getInput(0)))}},
       {"setScaleType",
        DOES(setScaleType(DataType::kE8M0), l.getScaleType() == DataType::kE8M0),
        "i8[1, 4]: 64 16 0 -64; f8e8m0[1, 2]: 0.0625 0.03125",
        {CALL(setScaleType(DataType::kINT8)), CALL(setScaleType(no_such<DataType>()))}},
       {"setAxis",
        DOES(setBlockSize(1), (l.setAxis(0), l.getAxis() == 0 && l.getBlockShape().nbDims == -1)),
        "i8[1, 4]: 127 127 0 -127; f32[1, 4]: 0.0315 0.007874 0 0.01575",
        {CALL(setAxis(1)), CALL(setAxis(-2)), [](Net&, IDynamicQuantizeLayer& l) { l.setBlockSize(1), l.setAxis(2); }}},
       {"setBlockSize",
        DOES(setAxis(1), (l.setBlockSize(1), l.getBlockSize() == 1)),
        "i8[1, 4]: 127 127 0 -127; f32[1, 4]: 0.0315 0.007874 0 0.01575",
        {CALL(setBlockSize(2)), [](Net&, IDynamicQuantizeLayer& l) { l.setAxis(1), l.setBlockSize(3); },
         [](Net&, IDynamicQuantizeLayer& l) { l.setAxis(1), l.setBlockSize(0); }}},
       {"setBlockShape",
        [](Net& n, IDynamicQuantizeLayer& l) {
          l.setInput(1, n.constant(dims({}), {2})), l.setBlockShape(Dims2(-1, 1));
          return same(l.getBlockShape(), Dims2(-1, 1)) && l.getAxis() == -1;
        },
        "i8[1, 4]: 127 127 0 -127; f32[1, 4]: 0.01575 0.003937 0 0.007874",
        {CALL(setBlockShape(kRank9)), CALL(setBlockShape(Dims3(1, 1, 2))), CALL(setBlockShape(Dims2(1, 3))),
         CALL(setBlockShape(Dims2(1, 0)))}}});
}

// Token 0 takes expert 1, token 1 expert 0: inner values 2 and 1.
inline IMoELayer* two_experts(Net& n) {
  auto* layer =
      n.network->addMoE(n.input(Dims3(1, 2, 2)), n.shaped(Dims3(1, 2, 1), {1, 0}), n.constant(Dims3(1, 2, 1), {1, 2}));
  layer->setGatedWeights(n.constant(Dims3(2, 2, 1), {1, 1, 1, 0}), n.constant(Dims3(2, 2, 1), {1, 1, 0, 1}),
                         n.constant(Dims3(2, 1, 2), {1, 2, 3, 4}), MoEActType::kNONE);
  return layer;
}

inline void add_experts(Table& table) {
  using Moe = IMoELayer;
  add<Moe>(
      table, "IMoELayer", two_experts,
      {{"setInput",
        DOES(setInput(2, n.constant(Dims3(1, 2, 1), {2, 2})), l.getNbInputs() == 6),
        "f32[1, 2, 2]: 12 16 2 4",
        {CALL(setInput(10, *l.getInput(0))), CALL(setInput(-1, *l.getInput(0))),
         CALL(setInput(1, n.constant(Dims3(1, 2, 1), {1, 0}))), CALL(setInput(2, n.constant(Dims3(1, 2, 2), {1, 0, 1, 0}))),
         CALL(setInput(0, n.input(Dims2(2, 2)))), CALL(setInput(2, n.shaped(Dims3(1, 2, 1), {1, 0})))}},
       {"setGatedWeights",
        DOES(setGatedWeights(*l.getInput(3), *l.getInput(4), *l.getInput(5), MoEActType::kSILU),
             l.getActivationType() == MoEActType::kSILU),
        "f32[1, 2, 2]: 0.7152 0.9536 1.462 2.924",
        {CALL(setGatedWeights(*l.getInput(5), *l.getInput(4), *l.getInput(3), MoEActType::kSILU)),
         CALL(setGatedWeights(*l.getInput(3), *l.getInput(4), *l.getInput(5), no_such<MoEActType>())),
         CALL(setGatedWeights(*l.getInput(0), *l.getInput(1), *l.getInput(2), MoEActType::kNONE)),
         [](Net&, Moe& l) {
           Net other;
           l.setGatedWeights(*l.getInput(3), *l.getInput(4), other.input(Dims3(2, 1, 2)), MoEActType::kNONE);
         }}},
       {"setGatedBiases",
        DOES(setGatedBiases(n.constant(Dims2(2, 1), {1, 1}), n.constant(Dims2(2, 1), {0, 1}),
                            n.constant(Dims2(2, 2), {0, 0, 1, 1})),
             l.getNbInputs() == 9),
        "f32[1, 2, 2]: 1 1 4 8",
        {CALL(setGatedBiases(n.constant(Dims2(2, 1), {1, 1}), n.constant(Dims2(2, 1), {0, 1}),
                             n.constant(Dims2(2, 1), {0, 0}))),
         CALL(setInput(6, n.constant(Dims2(2, 1), {1, 1})))}},
       {"setActivationType",
        DOES(setActivationType(MoEActType::kSILU), l.getActivationType() == MoEActType::kSILU),
        "f32[1, 2, 2]: 0.7152 0.9536 1.462 2.924",
        {CALL(setActivationType(no_such<MoEActType>()))}},
       {"setQuantizationStatic",
        DOES(setQuantizationStatic(n.constant(dims({2}), {1.5f, 1.5f}), DataType::kINT8),
             l.getQuantizationToType() == DataType::kINT8),
        "f32[1, 2, 2]: 4.5 6 3 6",
        {CALL(setQuantizationStatic(n.constant(dims({3}), {1, 1, 1}), DataType::kFP8)),
         CALL(setQuantizationStatic(n.constant(dims({}), {1}), DataType::kHALF)),
         CALL(setQuantizationStatic(n.constant(dims({}), {1}), no_such<DataType>())),
         CALL(setQuantizationStatic(n.numbers({1}), DataType::kFP8)), CALL(setInput(9, n.constant(dims({}), {1})))}},
       {"setQuantizationDynamicDblQ",
        DOES(setQuantizationDynamicDblQ(n.constant(dims({}), {3}), DataType::kFP4, Dims3(-1, -1, -1), DataType::kE8M0),
             l.getQuantizationToType() == DataType::kFP4 && l.getDynQOutputScaleType() == DataType::kE8M0),
        "f32[1, 2, 2]: 6.75 9 2.25 4.5",
        {CALL(setQuantizationDynamicDblQ(n.constant(dims({}), {3}), DataType::kFP4, Dims2(1, 1), DataType::kE8M0)),
         CALL(setQuantizationDynamicDblQ(n.constant(dims({}), {3}), DataType::kFP4, kRank9, DataType::kE8M0)),
         CALL(setQuantizationDynamicDblQ(n.constant(dims({}), {3}), DataType::kHALF, Dims3(1, 1, 1), DataType::kE8M0)),
         CALL(setQuantizationDynamicDblQ(n.constant(dims({2}), {3, 3}), DataType::kFP4, Dims3(1, 1, 1),
                                         DataType::kE8M0))}},
       {"setQuantizationToType",
        DOES(setQuantizationStatic(n.constant(dims({}), {1.5f}), DataType::kFP8),
             (l.setQuantizationToType(DataType::kINT8), l.getQuantizationToType() == DataType::kINT8)),
        "f32[1, 2, 2]: 4.5 6 3 6",
        {CALL(setQuantizationToType(no_such<DataType>())),
         [](Net& n, Moe& l) {
           l.setQuantizationStatic(n.constant(dims({}), {1}), DataType::kFP8);
           l.setQuantizationToType(DataType::kFP4);
         }}},
       {"setQuantizationBlockShape",
        DOES(setQuantizationDynamicDblQ(n.constant(dims({}), {3}), DataType::kFP4, Dims3(1, 1, 1), DataType::kE8M0),
             (l.setQuantizationBlockShape(Dims3(-1, -1, -1)),
              same(l.getQuantizationBlockShape(), Dims3(-1, -1, -1)))),
        "f32[1, 2, 2]: 6.75 9 2.25 4.5",
        {CALL(setQuantizationBlockShape(kRank9)),
         [](Net& n, Moe& l) {
           l.setQuantizationDynamicDblQ(n.constant(dims({}), {3}), DataType::kFP4, Dims3(1, 1, 1), DataType::kE8M0);
           l.setQuantizationBlockShape(Dims3(1, 1, 2));
         }}},
       {"setDynQOutputScaleType",
        DOES(setQuantizationDynamicDblQ(n.constant(dims({}), {3}), DataType::kFP4, Dims3(-1, -1, -1), DataType::kHALF),
             (l.setDynQOutputScaleType(DataType::kE8M0), l.getDynQOutputScaleType() == DataType::kE8M0)),
        "f32[1, 2, 2]: 6.75 9 2.25 4.5",
        {CALL(setDynQOutputScaleType(no_such<DataType>())),
         [](Net& n, Moe& l) {
           l.setQuantizationDynamicDblQ(n.constant(dims({}), {3}), DataType::kFP4, Dims3(1, 1, 1), DataType::kE8M0);
           l.setDynQOutputScaleType(DataType::kINT32);
         }}},
       {"setSwigluParams",
        DOES(setActivationType(MoEActType::kSILU),
             (l.setSwigluParams(1, 2, 3), l.getSwigluParamLimit() == 1 && l.getSwigluParamBeta() == 3)),
        "f32[1, 2, 2]: -0.2158 -0.2878 7.046 14.09",
        {CALL(setSwigluParams(-1, 1, 0)), CALL(setSwigluParams(1, std::numeric_limits<float>::infinity(), 0))}},
       {"setSwigluParamLimit",
        DOES(setActivationType(MoEActType::kSILU), (l.setSwigluParamLimit(0.5f), l.getSwigluParamLimit() == 0.5f)),
        "f32[1, 2, 2]: 0.3576 0.4768 0.3655 0.7311",
        {CALL(setSwigluParamLimit(0))}},
       {"setSwigluParamAlpha",
        DOES(setActivationType(MoEActType::kSILU), (l.setSwigluParamAlpha(2), l.getSwigluParamAlpha() == 2)),
        "f32[1, 2, 2]: 0.1079 0.1439 1.762 3.523",
        {CALL(setSwigluParamAlpha(std::numeric_limits<float>::quiet_NaN()))}},
       {"setSwigluParamBeta",
        DOES(setActivationType(MoEActType::kSILU), (l.setSwigluParamBeta(2), l.getSwigluParamBeta() == 2)),
        "f32[1, 2, 2]: -0.7152 -0.9536 4.386 8.773",
        {CALL(setSwigluParamBeta(std::numeric_limits<float>::infinity()))}}});
}

}  // namespace nvinfer1::layers
