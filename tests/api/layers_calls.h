// SPDX-License-Identifier: Apache-2.0
// A row for every setter of the layers that networks have; x counts from -2.
#pragma once

#include "api/layers_world.h"

namespace nvinfer1::layers {

inline void add_common(Table& table) {
  add<ILayer>(
      table, "ILayer", [](Net& n) { return n.network->addIdentity(n.input(Dims2(1, 2))); },
      {{"setName",
        DOES(setName("a"), std::string(l.getName()) == "a"),
        nullptr,
        {CALL(setName(nullptr)), CALL(setName(std::string(5000, 'a').c_str()))}},
       {"setInput",
        DOES(setInput(0, n.input(dims({3}))), l.getInput(0) == n.network->getInput(1)),
        "f32[3]: -2 -1 0",
        {CALL(setInput(1, *l.getInput(0))), CALL(setInput(-1, *l.getInput(0))), CALL(setInput(0, *l.getOutput(0))),
         [](Net&, ILayer& l) {
           Net other;
           l.setInput(0, other.input(dims({3})));
         }}},
       {"setMetadata",
        DOES(setMetadata("m"), std::string(l.getMetadata()) == "m"),
        nullptr,
        {CALL(setMetadata(nullptr))}},
       {"setNbRanks", DOES(setNbRanks(1), l.getNbRanks() == 1), nullptr, {CALL(setNbRanks(0)), CALL(setNbRanks(2))}}});
}

// Convolution and deconvolution have the same setters; their results are in the order of these.
template <class L>
void add_convolution(Table& table, const char* kind, std::function<L*(Net&)> make, std::vector<const char*> results) {
  static constexpr auto kNoValues = Weights{DataType::kFLOAT, nullptr, 8};
  add<L>(table, kind, make,
         {{"setNbOutputMaps",
           [](Net& n, L& l) {
             l.setNbOutputMaps(4), l.setKernelWeights(n.weights({1, 2, 3, 4, 5, 6, 7, 8}));
             l.setKernelSizeNd(DimsHW(1, 1)), l.setBiasWeights({});
             return l.getNbOutputMaps() == 4;
           },
           results[0],
           {CALL(setNbOutputMaps(3)), CALL(setNbOutputMaps(0)), CALL(setNbOutputMaps(-2))}},
          {"setNbGroups",
           [](Net& n, L& l) {
             l.setNbGroups(2), l.setKernelWeights(n.weights({1, 2, 3, 4}));
             return l.getNbGroups() == 2;
           },
           results[1],
           {CALL(setNbGroups(2)), CALL(setNbGroups(0)), CALL(setNbGroups(-1)), CALL(setNbGroups(7))}},
          {"setKernelWeights",
           DOES(setKernelWeights(n.weights({1, 1, 1, 1, 1, 1, 1, 1})),
                l.getKernelWeights().values == n.floats.back().data()),
           results[2],
           {CALL(setKernelWeights(n.weights({1}))), CALL(setKernelWeights(kNoValues)), CALL(setKernelWeights({})),
            CALL(setKernelWeights((Weights{DataType::kFLOAT, &n, -8}))),
            CALL(setKernelWeights((Weights{no_such<DataType>(), &n, 8})))}},
          {"setBiasWeights",
           DOES(setBiasWeights(n.weights({10, 20})), l.getBiasWeights().values == n.floats.back().data()),
           results[3],
           {CALL(setBiasWeights(n.weights({1}))), CALL(setBiasWeights(kNoValues)),
            CALL(setBiasWeights((Weights{DataType::kFLOAT, &n, -1})))}},
          {"setPrePadding",
           DOES(setPrePadding(DimsHW(0, 1)), same(l.getPrePadding(), DimsHW(0, 1))),
           results[4],
           {CALL(setPrePadding(Dims3(1, 1, 1))), CALL(setPrePadding(kRank9)), CALL(setPrePadding(DimsHW(-1, 0)))}},
          {"setPostPadding",
           DOES(setPostPadding(DimsHW(0, 1)), same(l.getPostPadding(), DimsHW(0, 1))),
           results[5],
           {CALL(setPostPadding(Dims3(1, 1, 1))), CALL(setPostPadding(kRank9)), CALL(setPostPadding(DimsHW(-1, 0)))}},
          {"setPaddingMode",
           DOES(setPaddingMode(PaddingMode::kSAME_UPPER), l.getPaddingMode() == PaddingMode::kSAME_UPPER),
           results[6],
           {CALL(setPaddingMode(no_such<PaddingMode>()))}},
          {"setKernelSizeNd",
           DOES(setKernelSizeNd(DimsHW(2, 1)), same(l.getKernelSizeNd(), DimsHW(2, 1))),
           results[7],
           {CALL(setKernelSizeNd(DimsHW(2, 2))), CALL(setKernelSizeNd(kRank9)), CALL(setKernelSizeNd(DimsHW(0, 0))),
            CALL(setKernelSizeNd(DimsHW(-1, -2))), CALL(setKernelSizeNd(Dims3(1, 1, 2)))}},
          {"setStrideNd",
           DOES(setStrideNd(DimsHW(1, 2)), same(l.getStrideNd(), DimsHW(1, 2))),
           results[8],
           {CALL(setStrideNd(DimsHW(0, 1))), CALL(setStrideNd(DimsHW(1, -1))), CALL(setStrideNd(kRank9)),
            CALL(setStrideNd(Dims3(1, 1, 1)))}},
          {"setPaddingNd",
           DOES(setPaddingNd(DimsHW(0, 1)), same(l.getPaddingNd(), DimsHW(0, 1))),
           results[9],
           {CALL(setPaddingNd(DimsHW(0, -1))), CALL(setPaddingNd(kRank9)), CALL(setPaddingNd(Dims3(1, 1, 1)))}},
          {"setDilationNd",
           DOES(setDilationNd(DimsHW(1, 2)), same(l.getDilationNd(), DimsHW(1, 2))),
           results[10],
           {CALL(setDilationNd(DimsHW(0, 1))), CALL(setDilationNd(DimsHW(1, -1))), CALL(setDilationNd(kRank9)),
            CALL(setDilationNd(Dims3(1, 1, 1)))}}});
}

inline void add_window(Table& table) {
  add_convolution<IConvolutionLayer>(
      table, "IConvolutionLayer",
      [](Net& n) {
        return n.network->addConvolutionNd(n.input(Dims4(1, 2, 2, 3)), 2, DimsHW(1, 2),
                                           n.weights({1, 2, 3, 4, 5, 6, 7, 8}), n.weights({0, 1}));
      },
      {"f32[1, 4, 2, 3]: 6 9 12 15 18 21 10 17 24 31 38 45 14 25 36 47 58 69 18 33 48 63 78 93",
       "f32[1, 2, 2, 2]: -4 -1 5 8 33 40 54 61", "f32[1, 2, 2, 2]: 6 10 18 22 7 11 19 23",
       "f32[1, 2, 2, 2]: 38 48 68 78 72 98 150 176", "f32[1, 2, 2, 3]: 12 28 38 30 58 68 21 53 79 63 131 157",
       "f32[1, 2, 2, 3]: 28 38 18 58 68 30 53 79 43 131 157 79",
       "f32[1, 2, 2, 3]: 28 38 18 58 68 30 53 79 43 131 157 79", "f32[1, 2, 1, 3]: 40 50 60 81 107 133",
       "f32[1, 2, 2, 1]: 28 58 53 131", "f32[1, 2, 2, 4]: 12 28 38 18 30 58 68 30 21 53 79 43 63 131 157 79",
       "f32[1, 2, 2, 1]: 34 64 67 145"});
  add_convolution<IDeconvolutionLayer>(
      table, "IDeconvolutionLayer",
      [](Net& n) {
        return n.network->addDeconvolutionNd(n.input(Dims4(1, 2, 2, 3)), 2, DimsHW(1, 2),
                                             n.weights({1, 2, 3, 4, 5, 6, 7, 8}), n.weights({0, 1}));
      },
      {"f32[1, 4, 2, 3]: 18 24 30 36 42 48 20 28 36 44 52 60 22 32 42 52 62 72 24 36 48 60 72 84",
       "f32[1, 2, 2, 4]: -2 -5 -2 0 1 4 7 6 13 32 39 25 22 53 60 37",
       "f32[1, 2, 2, 4]: 2 6 10 6 8 18 22 12 3 7 11 7 9 19 23 13",
       "f32[1, 2, 2, 4]: 28 54 68 46 46 96 110 70 42 76 98 68 72 142 164 104",
       "f32[1, 2, 2, 3]: 44 58 36 86 100 60 57 79 49 123 145 85",
       "f32[1, 2, 2, 3]: 18 44 58 36 86 100 23 57 79 53 123 145",
       "f32[1, 2, 2, 3]: 18 44 58 36 86 100 23 57 79 53 123 145",
       "f32[1, 2, 3, 3]: 18 24 30 56 70 84 44 52 60 23 33 43 77 99 121 61 73 85",
       "f32[1, 2, 2, 6]: 18 20 24 28 30 36 36 44 42 52 48 60 23 25 33 37 43 49 53 61 63 73 73 85",
       "f32[1, 2, 2, 2]: 44 58 86 100 57 79 123 145",
       "f32[1, 2, 2, 5]: 18 24 50 28 36 36 42 92 52 60 23 33 67 37 49 53 63 133 73 85"});
}

inline void add_pooling(Table& table) {
  const auto pool = [](Net& n) {
    auto* l = n.network->addPoolingNd(n.input(Dims4(1, 1, 2, 3)), PoolingType::kMAX_AVERAGE_BLEND, DimsHW(1, 2));
    l->setBlendFactor(1);
    return l;
  };
  const auto padded = [pool](Net& n) {
    auto* l = pool(n);
    l->setPaddingNd(DimsHW(0, 1));
    return l;
  };
  add<IPoolingLayer>(
      table, "IPoolingLayer", pool,
      {{"setPoolingType",
        DOES(setPoolingType(PoolingType::kMAX), l.getPoolingType() == PoolingType::kMAX),
        "f32[1, 1, 2, 2]: -1 0 2 3",
        {CALL(setPoolingType(no_such<PoolingType>()))}},
       {"setBlendFactor",
        DOES(setBlendFactor(0.5f), l.getBlendFactor() == 0.5f),
        "f32[1, 1, 2, 2]: -1.25 -0.25 1.75 2.75",
        {}},
       {"setPrePadding",
        DOES(setPrePadding(DimsHW(0, 1)), same(l.getPrePadding(), DimsHW(0, 1))),
        "f32[1, 1, 2, 3]: -2 -1.5 -0.5 1 1.5 2.5",
        {CALL(setPrePadding(Dims3(1, 1, 1))), CALL(setPrePadding(kRank9)), CALL(setPrePadding(DimsHW(-1, 0)))}},
       {"setPostPadding",
        DOES(setPostPadding(DimsHW(0, 1)), same(l.getPostPadding(), DimsHW(0, 1))),
        "f32[1, 1, 2, 3]: -1.5 -0.5 0 1.5 2.5 3",
        {CALL(setPostPadding(Dims3(1, 1, 1))), CALL(setPostPadding(kRank9)), CALL(setPostPadding(DimsHW(-1, 0)))}},
       {"setPaddingMode",
        DOES(setPaddingMode(PaddingMode::kSAME_UPPER), l.getPaddingMode() == PaddingMode::kSAME_UPPER),
        "f32[1, 1, 2, 3]: -1.5 -0.5 0 1.5 2.5 3",
        {CALL(setPaddingMode(no_such<PaddingMode>()))}},
       {"setWindowSizeNd",
        DOES(setWindowSizeNd(DimsHW(2, 2)), same(l.getWindowSizeNd(), DimsHW(2, 2))),
        "f32[1, 1, 1, 2]: 0 1",
        {CALL(setWindowSizeNd(DimsHW(0, 1))), CALL(setWindowSizeNd(DimsHW(9, 9))), CALL(setWindowSizeNd(kRank9)),
         CALL(setWindowSizeNd(Dims3(1, 1, 1)))}},
       {"setStrideNd",
        DOES(setStrideNd(DimsHW(2, 1)), same(l.getStrideNd(), DimsHW(2, 1))),
        "f32[1, 1, 1, 2]: -1.5 -0.5",
        {CALL(setStrideNd(DimsHW(0, 1))), CALL(setStrideNd(kRank9)), CALL(setStrideNd(Dims3(1, 1, 1)))}},
       {"setPaddingNd",
        DOES(setPaddingNd(DimsHW(0, 1)), same(l.getPaddingNd(), DimsHW(0, 1))),
        "f32[1, 1, 2, 4]: -2 -1.5 -0.5 0 1 1.5 2.5 3",
        {CALL(setPaddingNd(DimsHW(0, -1))), CALL(setPaddingNd(kRank9)), CALL(setPaddingNd(Dims3(1, 1, 1)))}}});
  add<IPoolingLayer>(table, "IPoolingLayer", padded,
                     {{"setAverageCountExcludesPadding",
                       DOES(setAverageCountExcludesPadding(false), !l.getAverageCountExcludesPadding()),
                       "f32[1, 1, 2, 4]: -1 -1.5 -0.5 0 0.5 1.5 2.5 1.5",
                       {}}});
}

inline void add_pointwise(Table& table) {
  add<IActivationLayer>(
      table, "IActivationLayer",
      [](Net& n) { return n.network->addActivation(n.input(dims({4})), ActivationType::kHARD_SIGMOID); },
      {{"setActivationType",
        DOES(setActivationType(ActivationType::kRELU), l.getActivationType() == ActivationType::kRELU),
        "f32[4]: 0 0 0 1",
        {CALL(setActivationType(no_such<ActivationType>())), CALL(setActivationType(static_cast<ActivationType>(-1)))}},
       {"setAlpha", DOES(setAlpha(0.5f), l.getAlpha() == 0.5f), "f32[4]: 0 0 0 0.5", {}},
       {"setBeta", DOES(setBeta(0.5f), l.getBeta() == 0.5f), "f32[4]: 0.5 0.5 0.5 0.5", {}}});
  add<IUnaryLayer>(table, "IUnaryLayer",
                   [](Net& n) { return n.network->addUnary(n.input(dims({4})), UnaryOperation::kABS); },
                   {{"setOperation",
                     DOES(setOperation(UnaryOperation::kNEG), l.getOperation() == UnaryOperation::kNEG),
                     "f32[4]: 2 1 -0 -1",
                     {CALL(setOperation(no_such<UnaryOperation>())), CALL(setOperation(UnaryOperation::kNOT))}}});
  add<IElementWiseLayer>(
      table, "IElementWiseLayer",
      [](Net& n) {
        return n.network->addElementWise(n.input(dims({4})), n.constant(dims({1}), {3}), ElementWiseOperation::kSUM);
      },
      {{"setOperation",
        DOES(setOperation(ElementWiseOperation::kPROD), l.getOperation() == ElementWiseOperation::kPROD),
        "f32[4]: -6 -3 0 3",
        {CALL(setOperation(no_such<ElementWiseOperation>())), CALL(setOperation(ElementWiseOperation::kAND))}}});
  add<IScaleLayer>(table, "IScaleLayer",
                   [](Net& n) {
                     return n.network->addScaleNd(n.input(Dims4(1, 2, 2, 1)), ScaleMode::kCHANNEL, n.weights({1, 2}),
                                                  n.weights({3, 4}), n.weights({1, 2}), 1);
                   },
                   {{"setMode",
                     [](Net& n, IScaleLayer& l) {
                       l.setMode(ScaleMode::kUNIFORM), l.setShift(n.weights({1})), l.setScale({}), l.setPower({});
                       return l.getMode() == ScaleMode::kUNIFORM;
                     },
                     "f32[1, 2, 2, 1]: -1 0 1 2",
                     {CALL(setMode(no_such<ScaleMode>())), CALL(setMode(ScaleMode::kUNIFORM)),
                      CALL(setMode(ScaleMode::kELEMENTWISE))}},
                    {"setShift",
                     DOES(setShift(n.weights({5, 5})), l.getShift().count == 2),
                     "f32[1, 2, 2, 1]: -1 2 25 81",
                     {CALL(setShift(n.weights({5}))), CALL(setShift((Weights{DataType::kFLOAT, nullptr, 2})))}},
                    {"setScale",
                     DOES(setScale({}), l.getScale().count == 0),
                     "f32[1, 2, 2, 1]: -1 0 4 9",
                     {CALL(setScale(n.weights({5}))), CALL(setScale((Weights{DataType::kFLOAT, &n, -2})))}},
                    {"setPower",
                     DOES(setPower(n.weights({2, 1})), l.getPower().count == 2),
                     "f32[1, 2, 2, 1]: 25 4 2 6",
                     {CALL(setPower(n.weights({5}))), CALL(setPower((Weights{no_such<DataType>(), &n, 2})))}},
                    {"setChannelAxis",
                     DOES(setChannelAxis(2), l.getChannelAxis() == 2),
                     "f32[1, 2, 2, 1]: -5 4 1 36",
                     {CALL(setChannelAxis(-1)), CALL(setChannelAxis(4)), [](Net& n, IScaleLayer& l) {
                        l.setMode(ScaleMode::kUNIFORM), l.setShift({}), l.setScale({}), l.setPower({}),
                            l.setChannelAxis(-1);
                      }}}});
  add<ICastLayer>(table, "ICastLayer", [](Net& n) { return n.network->addCast(n.input(dims({4})), DataType::kHALF); },
                  {{"setToType",
                    DOES(setToType(DataType::kINT32), l.getToType() == DataType::kINT32),
                    "i32[4]: -2 -1 0 1",
                    {CALL(setToType(no_such<DataType>()))}}});
}

inline void add_rows(Table& table) {
  add<ILRNLayer>(table, "ILRNLayer", [](Net& n) { return n.network->addLRN(n.input(Dims4(1, 3, 1, 1)), 1, 1, 1, 1); },
                 {{"setWindowSize",
                   DOES(setWindowSize(3), l.getWindowSize() == 3),
                   "f32[1, 3, 1, 1]: -0.75 -0.375 0",
                   {CALL(setWindowSize(0)), CALL(setWindowSize(4)), CALL(setWindowSize(-3)), CALL(setWindowSize(17))}},
                  {"setAlpha", DOES(setAlpha(2), l.getAlpha() == 2), "f32[1, 3, 1, 1]: -0.2222 -0.3333 0", {}},
                  {"setBeta", DOES(setBeta(2), l.getBeta() == 2), "f32[1, 3, 1, 1]: -0.08 -0.25 0", {}},
                  {"setK", DOES(setK(2), l.getK() == 2), "f32[1, 3, 1, 1]: -0.3333 -0.3333 0", {}}});
  add<ISoftMaxLayer>(table, "ISoftMaxLayer", [](Net& n) { return n.network->addSoftMax(n.input(Dims2(2, 2))); },
                     {{"setAxes",
                       DOES(setAxes(2), l.getAxes() == 2),
                       "f32[2, 2]: 0.2689 0.7311 0.2689 0.7311",
                       {CALL(setAxes(0)), CALL(setAxes(3)), CALL(setAxes(4)), CALL(setAxes(1u << 31))}}});
  add<IReduceLayer>(
      table, "IReduceLayer",
      [](Net& n) { return n.network->addReduce(n.input(Dims2(2, 2)), ReduceOperation::kSUM, 1, false); },
      {{"setOperation",
        DOES(setOperation(ReduceOperation::kMAX), l.getOperation() == ReduceOperation::kMAX),
        "f32[2]: 0 1",
        {CALL(setOperation(no_such<ReduceOperation>())), CALL(setOperation(ReduceOperation::kNONE))}},
       {"setReduceAxes",
        DOES(setReduceAxes(3), l.getReduceAxes() == 3),
        "f32[]: -2",
        {CALL(setReduceAxes(0)), CALL(setReduceAxes(4))}},
       {"setKeepDimensions", DOES(setKeepDimensions(true), l.getKeepDimensions()), "f32[1, 2]: -2 0", {}}});
  add<ITopKLayer>(
      table, "ITopKLayer",
      [](Net& n) { return n.network->addTopK(n.input(Dims2(2, 3)), TopKOperation::kMAX, 1, 2, DataType::kINT32); },
      {{"setOperation",
        DOES(setOperation(TopKOperation::kMIN), l.getOperation() == TopKOperation::kMIN),
        "f32[2, 1]: -2 1; i32[2, 1]: 0 0",
        {CALL(setOperation(no_such<TopKOperation>()))}},
       {"setK",
        DOES(setK(2), l.getK() == 2),
        "f32[2, 2]: 0 -1 3 2; i32[2, 2]: 2 1 2 1",
        {CALL(setK(0)), CALL(setK(-1)), CALL(setK(4)), CALL(setK(3841))}},
       {"setReduceAxes",
        DOES(setReduceAxes(1), l.getReduceAxes() == 1),
        "f32[1, 3]: 1 2 3; i32[1, 3]: 1 1 1",
        {CALL(setReduceAxes(0)), CALL(setReduceAxes(3)), CALL(setReduceAxes(4))}},
       {"setIndicesType",
        DOES(setIndicesType(DataType::kINT64), l.getIndicesType() == DataType::kINT64),
        "f32[2, 1]: 0 3; i64[2, 1]: 2 2",
        {CALL(setIndicesType(DataType::kFLOAT)), CALL(setIndicesType(no_such<DataType>()))}}});
}

inline void add_products(Table& table) {
  add<ICumulativeLayer>(table, "ICumulativeLayer",
                        [](Net& n) {
                          return n.network->addCumulative(n.input(dims({4})), n.shaped(dims({}), {0}),
                                                          CumulativeOperation::kSUM, false, false);
                        },
                        {{"setOperation",
                          DOES(setOperation(CumulativeOperation::kSUM), l.getOperation() == CumulativeOperation::kSUM),
                          nullptr,
                          {CALL(setOperation(no_such<CumulativeOperation>()))}},
                         {"setExclusive", DOES(setExclusive(true), l.getExclusive()), "f32[4]: 0 -2 -3 -3", {}},
                         {"setReverse", DOES(setReverse(true), l.getReverse()), "f32[4]: -2 0 1 1", {}}});
  add<IMatrixMultiplyLayer>(
      table, "IMatrixMultiplyLayer",
      [](Net& n) {
        return n.network->addMatrixMultiply(n.input(Dims2(2, 2)), MatrixOperation::kNONE,
                                            n.constant(Dims2(2, 2), {1, 2, 3, 4}), MatrixOperation::kNONE);
      },
      {{"setOperation",
        DOES(setOperation(1, MatrixOperation::kTRANSPOSE), l.getOperation(1) == MatrixOperation::kTRANSPOSE),
        "f32[2, 2]: -4 -10 2 4",
        {CALL(setOperation(0, no_such<MatrixOperation>())), CALL(setOperation(2, MatrixOperation::kTRANSPOSE)),
         CALL(setOperation(-1, MatrixOperation::kTRANSPOSE)), CALL(setOperation(0, MatrixOperation::kVECTOR))}}});
  add<IEinsumLayer>(table, "IEinsumLayer",
                    [](Net& n) {
                      ITensor* const inputs[] = {&n.input(Dims2(2, 2)), &n.constant(Dims2(2, 2), {1, 2, 3, 4})};
                      return n.network->addEinsum(inputs, 2, "ij,jk->ik");
                    },
                    {{"setEquation",
                      DOES(setEquation("ij,kj->ik"), std::string(l.getEquation()) == "ij,kj->ik"),
                      "f32[2, 2]: -4 -10 2 4",
                      {CALL(setEquation(nullptr)), CALL(setEquation("ij,jk->iz")), CALL(setEquation("ij"))}}});
  add<INormalizationLayer>(
      table, "INormalizationLayer",
      [](Net& n) {
        return n.network->addNormalization(n.input(Dims3(1, 4, 2)), n.constant(Dims3(1, 4, 1), {1, 2, 1, 2}),
                                           n.constant(Dims3(1, 4, 1), {0, 1, 0, 1}), 1u << 2);
      },
      {{"setEpsilon",
        DOES(setEpsilon(1), l.getEpsilon() == 1),
        "f32[1, 4, 2]: -0.4472 0.4472 0.1056 1.894 -0.4472 0.4472 0.1056 1.894",
        {}},
       {"setAxes",
        DOES(setAxes(6), l.getAxes() == 6),
        "f32[1, 4, 2]: -1.528 -1.091 -0.3093 0.5636 0.2182 0.6547 3.182 4.055",
        {CALL(setAxes(0)), CALL(setAxes(8))}},
       {"setNbGroups",
        DOES(setNbGroups(2), l.getNbGroups() == 2),
        "f32[1, 4, 2]: -1.342 -0.4472 1.894 3.683 -1.342 -0.4472 1.894 3.683",
        {CALL(setNbGroups(0)), CALL(setNbGroups(-1)), CALL(setNbGroups(3)), [](Net&, INormalizationLayer& l) {
           l.setNbGroups(2), l.setAxes(6);  // the groups' axes are those behind the channels
         }}}});
}

}  // namespace nvinfer1::layers
