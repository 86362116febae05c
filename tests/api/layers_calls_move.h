// SPDX-License-Identifier: Apache-2.0
// A row for every setter of the layers that move, make or convert elements; x counts from -2.
#pragma once

#include "api/layers_calls.h"

namespace nvinfer1::layers {

inline const Permutation kSwap{{1, 0, 2, 3, 4, 5, 6, 7}};
inline const Permutation kNoPermutation{{7, 7, 7, 7, 7, 7, 7, 7}};

inline void add_moves(Table& table) {
  add<IShuffleLayer>(table, "IShuffleLayer",
                     [](Net& n) {
                       auto* l = n.network->addShuffle(n.input(Dims2(2, 3)));
                       l->setReshapeDimensions(Dims2(0, 3));
                       return l;
                     },
                     {{"setFirstTranspose",
                       [](Net&, IShuffleLayer& l) {
                         l.setFirstTranspose(kSwap), l.setReshapeDimensions(dims({6}));
                         return l.getFirstTranspose().order[0] == 1;
                       },
                       "f32[6]: -2 1 -1 2 0 3",
                       {CALL(setFirstTranspose(kNoPermutation)), CALL(setFirstTranspose((Permutation{{-1, 0}})))}},
                      {"setReshapeDimensions",
                       DOES(setReshapeDimensions(Dims2(3, -1)), same(l.getReshapeDimensions(), Dims2(3, -1))),
                       "f32[3, 2]: -2 -1 0 1 2 3",
                       {CALL(setReshapeDimensions(Dims2(4, 2))), CALL(setReshapeDimensions(Dims2(-1, -1))),
                        CALL(setReshapeDimensions(Dims2(-2, 3))), CALL(setReshapeDimensions(kRank9)),
                        CALL(setReshapeDimensions((Dims{-5, {}})))}},
                      {"setSecondTranspose",
                       DOES(setSecondTranspose(kSwap), l.getSecondTranspose().order[0] == 1),
                       "f32[3, 2]: -2 1 -1 2 0 3",
                       {CALL(setSecondTranspose(kNoPermutation))}},
                      {"setZeroIsPlaceholder",
                       [](Net& n, IShuffleLayer& l) {
                         l.setInput(0, n.input(Dims2(0, 3))), l.setReshapeDimensions(Dims2(0, 7)),
                             l.setZeroIsPlaceholder(false);
                         return !l.getZeroIsPlaceholder();
                       },
                       "f32[0, 7]:",
                       {}}});
}

inline void add_slices(Table& table) {
  add<ISliceLayer>(
      table, "ISliceLayer",
      [](Net& n) { return n.network->addSlice(n.input(Dims2(2, 4)), Dims2(0, 1), Dims2(2, 2), Dims2(1, 1)); },
      {{"setStart",
        DOES(setStart(Dims2(0, 2)), same(l.getStart(), Dims2(0, 2))),
        "f32[2, 2]: 0 1 4 5",
        {CALL(setStart(Dims2(0, 3))), CALL(setStart(Dims2(-2, 0))), CALL(setStart(Dims3(0, 0, 0))),
         CALL(setStart(kRank9))}},
       {"setSize",
        DOES(setSize(Dims2(1, 3)), same(l.getSize(), Dims2(1, 3))),
        "f32[1, 3]: -1 0 1",
        {CALL(setSize(Dims2(2, 4))), CALL(setSize(Dims2(2, -1))), CALL(setSize(dims({2}))), CALL(setSize(kRank9))}},
       {"setStride",
        DOES(setStride(Dims2(1, 2)), same(l.getStride(), Dims2(1, 2))),
        "f32[2, 2]: -1 1 3 5",
        {CALL(setStride(Dims2(1, 3))), CALL(setStride(Dims2(1, -2))), CALL(setStride(dims({2}))),
         CALL(setStride(kRank9))}},
       {"setMode",
        [](Net& n, ISliceLayer& l) {
          l.setSize(Dims2(2, 4)), l.setMode(SampleMode::kFILL), l.setInput(4, n.constant(dims({}), {9}));
          return l.getMode() == SampleMode::kFILL;
        },
        "f32[2, 4]: -1 0 1 9 3 4 5 9",
        {CALL(setMode(no_such<SampleMode>())), CALL(setInput(4, n.constant(dims({}), {1}))),
         [](Net& n, ISliceLayer& l) { l.setMode(SampleMode::kFILL), l.setInput(4, n.constant(dims({1}), {1})); },
         [](Net& n, ISliceLayer& l) { l.setMode(SampleMode::kFILL), l.setInput(4, n.shaped(dims({}), {1})); }}},
       {"setAxes",
        [](Net& n, ISliceLayer& l) {
          l.setAxes(dims({1})), l.setStart(dims({3})), l.setSize(dims({1})), l.setStride(dims({1}));
          return same(l.getAxes(), dims({1}));
        },
        "f32[2, 1]: 1 5",
        {CALL(setAxes(dims({1}))), CALL(setAxes(Dims2(0, 2))), CALL(setAxes(Dims2(0, 0))), CALL(setAxes(kRank9)),
         CALL(setAxes(Dims2(0, -3))), CALL(setInput(5, n.shaped(dims({1}), {2}))),
         CALL(setInput(5, *l.getInput(0)))}}});
  add<IConcatenationLayer>(
      table, "IConcatenationLayer",
      [](Net& n) {
        ITensor* const inputs[] = {&n.input(Dims2(1, 2)), &n.constant(Dims2(1, 2), {5, 6})};
        return n.network->addConcatenation(inputs, 2);
      },
      {{"setAxis", DOES(setAxis(1), l.getAxis() == 1), "f32[1, 4]: -2 -1 5 6", {CALL(setAxis(2)), CALL(setAxis(-3))}}});
  add<IPaddingLayer>(
      table, "IPaddingLayer",
      [](Net& n) { return n.network->addPaddingNd(n.input(Dims2(1, 3)), DimsHW(0, 0), DimsHW(0, 0)); },
      {{"setPrePaddingNd",
        DOES(setPrePaddingNd(DimsHW(1, -1)), same(l.getPrePaddingNd(), DimsHW(1, -1))),
        "f32[2, 2]: 0 0 -1 0",
        {CALL(setPrePaddingNd(dims({1}))), CALL(setPrePaddingNd(kRank9)), CALL(setPrePaddingNd(DimsHW(0, -4)))}},
       {"setPostPaddingNd",
        DOES(setPostPaddingNd(DimsHW(1, -1)), same(l.getPostPaddingNd(), DimsHW(1, -1))),
        "f32[2, 2]: -2 -1 0 0",
        {CALL(setPostPaddingNd(dims({1}))), CALL(setPostPaddingNd(kRank9)), CALL(setPostPaddingNd(DimsHW(-2, 0)))}}});
}

inline void add_makers(Table& table) {
  add<IConstantLayer>(
      table, "IConstantLayer",
      [](Net& n) {
        return n.network->addConstant(Dims2(2, 2), n.weights({1, 2, 3, 4}));
      },
      {{"setWeights",
        DOES(setWeights(n.weights({5, 6, 7, 8})), l.getWeights().count == 4),
        "f32[2, 2]: 5 6 7 8",
        {CALL(setWeights(n.weights({5}))), CALL(setWeights({})),
         CALL(setWeights((Weights{DataType::kFLOAT, nullptr, 4}))),
         CALL(setWeights((Weights{no_such<DataType>(), &n, 4})))}},
       {"setDimensions",
        DOES(setDimensions(dims({4})), same(l.getDimensions(), dims({4}))),
        "f32[4]: 1 2 3 4",
        {CALL(setDimensions(dims({3}))), CALL(setDimensions(kRank9)), CALL(setDimensions(Dims2(-2, -2)))}}});
  add<IFillLayer>(
      table, "IFillLayer",
      [](Net& n) { return n.network->addFill(dims({3}), FillOperation::kLINSPACE, DataType::kFLOAT); },
      {{"setDimensions",
        DOES(setDimensions(dims({2})), same(l.getDimensions(), dims({2}))),
        "f32[2]: 0 1",
        {CALL(setDimensions(dims({-1}))), CALL(setDimensions(Dims2(2, 2))), CALL(setDimensions(kRank9))}},
       {"setOperation",
        [](Net&, IFillLayer& l) {
          l.setOperation(FillOperation::kRANDOM_UNIFORM), l.setAlpha(7), l.setBeta(7);
          return l.getOperation() == FillOperation::kRANDOM_UNIFORM;
        },
        "f32[3]: 7 7 7",
        {CALL(setOperation(no_such<FillOperation>())),
         [](Net&, IFillLayer& l) { l.setOperation(FillOperation::kRANDOM_NORMAL), l.setToType(DataType::kINT32); },
         [](Net& n, IFillLayer& l) {
           l.setOperation(FillOperation::kRANDOM_NORMAL), l.setInput(1, n.constant(dims({1}), {1}));
         }}},
       {"setAlpha",
        DOES(setAlpha(0.5), l.getAlpha() == 0.5 && !l.isAlphaBetaInt64()),
        "f32[3]: 0.5 1.5 2.5",
        {[](Net&, IFillLayer& l) { l.setToType(DataType::kINT32), l.setAlpha(0.5); }}},
       {"setBeta",
        DOES(setBeta(0.5), l.getBeta() == 0.5 && !l.isAlphaBetaInt64()),
        "f32[3]: 0 0.5 1",
        {[](Net&, IFillLayer& l) { l.setAlphaInt64(2), l.setBeta(0.5); }}},
       {"setAlphaInt64",
        DOES(setAlphaInt64(5), l.getAlphaInt64() == 5 && l.isAlphaBetaInt64()),
        "f32[3]: 5 6 7",
        {[](Net&, IFillLayer& l) { l.setToType(DataType::kINT32), l.setAlphaInt64(int64_t{1} << 40); }}},
       {"setBetaInt64",
        DOES(setBetaInt64(5), l.getBetaInt64() == 5 && l.isAlphaBetaInt64()),
        "f32[3]: 0 5 10",
        {[](Net&, IFillLayer& l) { l.setAlpha(0.5), l.setBetaInt64(2); }}},
       {"setToType",
        DOES(setToType(DataType::kINT64), l.getToType() == DataType::kINT64),
        "i64[3]: 0 1 2",
        {CALL(setToType(no_such<DataType>())), CALL(setToType(DataType::kBOOL))}}});
}

inline void add_picks(Table& table) {
  const auto gather = [](Net& n) {
    return n.network->addGather(n.input(Dims2(2, 2)), n.shaped(Dims2(2, 1), {1, 0}), 0);
  };
  add<IGatherLayer>(table, "IGatherLayer", gather,
                    {{"setGatherAxis",
                      DOES(setGatherAxis(1), l.getGatherAxis() == 1),
                      "f32[2, 2, 1]: -1 -2 1 0",
                      {CALL(setGatherAxis(2)), CALL(setGatherAxis(-3))}},
                     {"setNbElementWiseDims",
                      [](Net&, IGatherLayer& l) {
                        l.setMode(GatherMode::kND), l.setNbElementWiseDims(1);
                        return l.getNbElementWiseDims() == 1;
                      },
                      "f32[2]: -1 0",
                      {CALL(setNbElementWiseDims(1)), CALL(setNbElementWiseDims(-1)),
                       [](Net&, IGatherLayer& l) { l.setMode(GatherMode::kND), l.setNbElementWiseDims(-1); }}},
                     {"setMode",
                      DOES(setMode(GatherMode::kELEMENT), l.getMode() == GatherMode::kELEMENT),
                      "f32[2, 1]: 0 -2",
                      {CALL(setMode(no_such<GatherMode>()))}}});
  add<IScatterLayer>(
      table, "IScatterLayer",
      [](Net& n) {
        return n.network->addScatter(n.input(Dims2(2, 2)), n.shaped(Dims2(1, 2), {1, 0}),
                                     n.constant(Dims2(1, 2), {7, 8}), ScatterMode::kELEMENT);
      },
      {{"setMode",
        [](Net& n, IScatterLayer& l) {
          l.setMode(ScatterMode::kND), l.setInput(2, n.constant(dims({1}), {9}));
          return l.getMode() == ScatterMode::kND;
        },
        "f32[2, 2]: -2 -1 9 1",
        {CALL(setMode(no_such<ScatterMode>())), CALL(setMode(ScatterMode::kND))}},
       {"setAxis", DOES(setAxis(1), l.getAxis() == 1), "f32[2, 2]: 8 7 0 1", {CALL(setAxis(2)), CALL(setAxis(-3))}}});
  add<IOneHotLayer>(
      table, "IOneHotLayer",
      [](Net& n) {
        return n.network->addOneHot(n.numbers({1, 0}), n.constant(dims({2}), {0, 5}), n.shaped(dims({}), {3}), 0);
      },
      {{"setAxis",
        DOES(setAxis(1), l.getAxis() == 1),
        "f32[2, 3]: 0 5 0 5 0 0",
        {CALL(setAxis(2)), CALL(setAxis(-3))}}});
  add<INonZeroLayer>(table, "INonZeroLayer",
                     [](Net& n) { return n.network->addNonZero(n.input(dims({4})), DataType::kINT32); },
                     {{"setIndicesType",
                       DOES(setIndicesType(DataType::kINT64), l.getIndicesType() == DataType::kINT64),
                       "i64[1, 3]: 0 1 3",
                       {CALL(setIndicesType(DataType::kFLOAT)), CALL(setIndicesType(no_such<DataType>()))}}});
}

inline void add_resize(Table& table) {
  static const float kScales[] = {1, 1, 1.5f, 2}, kBad[] = {1, 1, -1, 0};
  const auto resize = [](Net& n, InterpolationMode mode, ResizeCoordinateTransformation coordinates, int64_t width) {
    auto* l = n.network->addResize(n.input(Dims4(1, 1, 1, 4)));
    l->setResizeMode(mode), l->setCoordinateTransformation(coordinates), l->setOutputDimensions(Dims4(1, 1, 1, width));
    return l;
  };
  using Mode = InterpolationMode;
  using Map = ResizeCoordinateTransformation;
  const auto nearest = [resize](Net& n) { return resize(n, Mode::kNEAREST, Map::kHALF_PIXEL, 6); };
  const auto single = [resize](Net& n) { return resize(n, Mode::kNEAREST, Map::kHALF_PIXEL, 1); };
  const auto cubic = [resize](Net& n) { return resize(n, Mode::kCUBIC, Map::kHALF_PIXEL, 6); };
  add<IResizeLayer>(
      table, "IResizeLayer", nearest,
      {{"setOutputDimensions",
        DOES(setOutputDimensions(Dims4(1, 1, 2, 8)), same(l.getOutputDimensions(), Dims4(1, 1, 2, 8))),
        "f32[1, 1, 2, 8]: -2 -2 -2 -1 -1 0 0 1 -2 -2 -2 -1 -1 0 0 1",
        {CALL(setOutputDimensions(Dims2(1, 8))), CALL(setOutputDimensions(Dims4(1, 1, -1, 8))),
         CALL(setOutputDimensions(kRank9)), CALL(setOutputDimensions((Dims{-1, {}})))}},
       {"setScales",
        DOES(setScales(kScales, 4), l.getScales(0, nullptr) == 4 && l.getOutputDimensions().nbDims == -1),
        "f32[1, 1, 1, 8]: -2 -2 -2 -1 -1 0 0 1",
        {CALL(setScales(kScales, 3)), CALL(setScales(nullptr, 4)), CALL(setScales(kScales, 0)),
         CALL(setScales(kScales, 9)), CALL(setScales(kScales, -1)), CALL(setScales(kBad, 4))}},
       {"setResizeMode",
        DOES(setResizeMode(Mode::kLINEAR), l.getResizeMode() == Mode::kLINEAR),
        "f32[1, 1, 1, 6]: -2 -1.5 -0.8333 -0.1667 0.5 1",
        {CALL(setResizeMode(no_such<Mode>()))}},
       {"setCoordinateTransformation",
        DOES(setCoordinateTransformation(Map::kASYMMETRIC), l.getCoordinateTransformation() == Map::kASYMMETRIC),
        "f32[1, 1, 1, 6]: -2 -2 -1 0 0 1",
        {CALL(setCoordinateTransformation(no_such<Map>()))}},
       {"setNearestRounding",
        DOES(setNearestRounding(ResizeRoundMode::kCEIL), l.getNearestRounding() == ResizeRoundMode::kCEIL),
        "f32[1, 1, 1, 6]: -2 -1 0 0 1 1",
        {CALL(setNearestRounding(no_such<ResizeRoundMode>()))}}});
  add<IResizeLayer>(table, "IResizeLayer", single,
                    {{"setSelectorForSinglePixel",
                      DOES(setSelectorForSinglePixel(ResizeSelector::kUPPER),
                           l.getSelectorForSinglePixel() == ResizeSelector::kUPPER),
                      "f32[1, 1, 1, 1]: -2",
                      {CALL(setSelectorForSinglePixel(no_such<ResizeSelector>()))}}});
  add<IResizeLayer>(table, "IResizeLayer", cubic,
                    {{"setCubicCoeff",
                      DOES(setCubicCoeff(-0.5f), l.getCubicCoeff() == -0.5f),
                      "f32[1, 1, 1, 6]: -2.058 -1.562 -0.8333 -0.1667 0.5625 1.058",
                      {}},
                     {"setExcludeOutside",
                      DOES(setExcludeOutside(true), l.getExcludeOutside()),
                      "f32[1, 1, 1, 6]: -2.101 -1.629 -0.787 -0.213 0.6286 1.101",
                      {}}});
}

// x and its scales; 1 scale by axis and by block where `set` asks for it.
inline void add_quantization(Table& table) {
  add<IQuantizeLayer>(
      table, "IQuantizeLayer",
      [](Net& n) {
        return n.network->addQuantize(n.input(Dims2(2, 4)), n.constant(dims({}), {0.5f}), DataType::kINT8);
      },
      {{"setAxis",
        [](Net& n, IQuantizeLayer& l) {
          l.setInput(1, n.constant(dims({2}), {0.5f, 2})), l.setAxis(0);
          return l.getAxis() == 0;
        },
        "i8[2, 4]: -4 -2 0 2 1 2 2 2",
        {CALL(setAxis(2)), CALL(setAxis(-2)), CALL(setInput(1, n.constant(dims({2}), {0.5f, 2})))}},
       {"setToType",
        DOES(setToType(DataType::kINT4), l.getToType() == DataType::kINT4),
        "i4[2, 4]: -4 -2 0 2 4 6 7 7",
        {CALL(setToType(DataType::kFLOAT)), CALL(setToType(no_such<DataType>()))}},
       {"setBlockShape",
        [](Net& n, IQuantizeLayer& l) {
          l.setInput(1, n.constant(Dims2(2, 2), {0.5f, 1, 2, 4}));
          return l.setBlockShape(Dims2(1, 2)) && same(l.getBlockShape(), Dims2(1, 2));
        },
        "i8[2, 4]: -4 -2 0 1 1 2 1 1",
        {CALL(setBlockShape(Dims2(1, 2))), CALL(setBlockShape(dims({2}))), CALL(setBlockShape(Dims2(0, 2))),
         CALL(setBlockShape(Dims2(-2, 2))), CALL(setBlockShape(kRank9)), [](Net& n, IQuantizeLayer& l) {
           l.setInput(1, n.constant(Dims2(2, 2), {0.5f, 1, 2, 4})), l.setBlockShape(Dims2(1, 3));
         }}}});
  add<IDequantizeLayer>(
      table, "IDequantizeLayer",
      [](Net& n) {
        return n.network->addDequantize(n.input(Dims2(2, 4), DataType::kINT8), n.constant(dims({}), {0.5f}),
                                        DataType::kFLOAT);
      },
      {{"setAxis",
        [](Net& n, IDequantizeLayer& l) {
          l.setInput(1, n.constant(dims({2}), {0.5f, 2})), l.setAxis(0);
          return l.getAxis() == 0;
        },
        "f32[2, 4]: -1 -0.5 0 0.5 4 6 8 10",
        {CALL(setAxis(2)), CALL(setAxis(-2)), CALL(setInput(1, n.constant(dims({2}), {0.5f, 2})))}},
       {"setToType",
        DOES(setToType(DataType::kHALF), l.getToType() == DataType::kHALF),
        "f16[2, 4]: -1 -0.5 0 0.5 1 1.5 2 2.5",
        {CALL(setToType(DataType::kINT8)), CALL(setToType(no_such<DataType>()))}},
       {"setBlockShape",
        [](Net& n, IDequantizeLayer& l) {
          l.setInput(1, n.constant(Dims2(2, 2), {0.5f, 1, 2, 4}));
          return l.setBlockShape(Dims2(1, 2)) && same(l.getBlockShape(), Dims2(1, 2));
        },
        "f32[2, 4]: -1 -0.5 0 1 4 6 16 20",
        {CALL(setBlockShape(Dims2(1, 2))), CALL(setBlockShape(dims({2}))), CALL(setBlockShape(Dims2(0, 2))),
         CALL(setBlockShape(kRank9)), [](Net& n, IDequantizeLayer& l) {
           l.setInput(1, n.constant(Dims2(2, 2), {0.5f, 1, 2, 4})), l.setBlockShape(Dims2(1, 3));
         }}}});
}

}  // namespace nvinfer1::layers
