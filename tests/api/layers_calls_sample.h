// SPDX-License-Identifier: Apache-2.0
// A row for every setter of layers that are made of several ops; x counts from -2.
#pragma once

#include "api/layers_world.h"

namespace nvinfer1::layers {

inline void add_samplers(Table& table) {
  // Two points of a 2 x 2 image: the centre of the last pixel, and one beyond the first.
  add<IGridSampleLayer>(
      table, "IGridSampleLayer",
      [](Net& n) {
        return n.network->addGridSample(n.input(Dims4(1, 1, 2, 2)),
                                        n.constant(Dims4(1, 1, 2, 2), {0.5f, 0.5f, -0.75f, -0.5f}));
      },
      {{"setInterpolationMode",
        DOES(setInterpolationMode(InterpolationMode::kNEAREST),
             l.getInterpolationMode() == InterpolationMode::kNEAREST),
        "f32[1, 1, 1, 2]: 1 -2",
        {CALL(setInterpolationMode(no_such<InterpolationMode>()))}},
       {"setAlignCorners", DOES(setAlignCorners(true), l.getAlignCorners()), "f32[1, 1, 1, 2]: 0.25 -1.375", {}},
       {"setSampleMode",
        DOES(setSampleMode(SampleMode::kCLAMP), l.getSampleMode() == SampleMode::kCLAMP),
        "f32[1, 1, 1, 2]: 1 -2",
        {CALL(setSampleMode(SampleMode::kWRAP)), CALL(setSampleMode(no_such<SampleMode>())),
         CALL(setInput(1, n.constant(Dims4(1, 1, 2, 3), {0, 0, 0, 0, 0, 0}))),
         CALL(setInput(1, n.constant(Dims2(1, 2), {0, 0}))), CALL(setInput(0, n.shaped(Dims4(1, 1, 1, 1), {0})))}}});
  add<IReverseSequenceLayer>(
      table, "IReverseSequenceLayer",
      [](Net& n) {
        return n.network->addReverseSequence(n.input(Dims2(2, 2)), n.numbers({2, 1}));
      },
      {{"setBatchAxis",
        [](Net&, IReverseSequenceLayer& l) {
          l.setSequenceAxis(1), l.setBatchAxis(0);
          return l.getBatchAxis() == 0;
        },
        "f32[2, 2]: -1 -2 0 1",
        {CALL(setBatchAxis(0)), CALL(setBatchAxis(2)), CALL(setBatchAxis(-1)), CALL(setInput(1, n.numbers({1, 1, 1}))),
         CALL(setInput(1, n.constant(dims({2}), {1, 1})))}},
       {"setSequenceAxis",
        [](Net& n, IReverseSequenceLayer& l) {
          l.setInput(0, n.input(Dims3(1, 2, 2))), l.setSequenceAxis(2);
          return l.getSequenceAxis() == 2;
        },
        "f32[1, 2, 2]: -1 -2 0 1",
        {CALL(setSequenceAxis(1)), CALL(setSequenceAxis(2)), CALL(setSequenceAxis(-1))}}});
}

// Boxes 0 and 1 overlap, box 2 lies apart and is best.
inline void add_suppression(Table& table) {
  add<INMSLayer>(table, "INMSLayer",
                 [](Net& n) {
                   auto* layer =
                       n.network->addNMS(n.constant(Dims3(1, 3, 4), {0, 0, 2, 2, 0, 0, 2, 1.5f, 6, 6, 8, 8}),
                                         n.constant(Dims3(1, 3, 1), {0.5f, 0.6f, 0.9f}), n.shaped(dims({}), {9}));
                   layer->setInput(3, n.constant(dims({}), {0.5f}));
                   return layer;
                 },
                 {{"setBoundingBoxFormat",
                   DOES(setBoundingBoxFormat(BoundingBoxFormat::kCENTER_SIZES),
                        l.getBoundingBoxFormat() == BoundingBoxFormat::kCENTER_SIZES),
                   nullptr,
                   {CALL(setBoundingBoxFormat(no_such<BoundingBoxFormat>()))}},
                  {"setTopKBoxLimit",
                   DOES(setTopKBoxLimit(1), l.getTopKBoxLimit() == 1),
                   "i32[1, 3]: 0 0 2; i32[]: 1",
                   {CALL(setTopKBoxLimit(0)), CALL(setTopKBoxLimit(-1))}},
                  {"setIndicesType",
                   DOES(setIndicesType(DataType::kINT64), l.getIndicesType() == DataType::kINT64),
                   "i64[2, 3]: 0 0 2 0 0 1; i32[]: 2",
                   {CALL(setIndicesType(DataType::kFLOAT)), CALL(setIndicesType(no_such<DataType>())),
                    CALL(setInput(0, n.constant(Dims2(1, 4), {0, 0, 1, 1}))),
                    CALL(setInput(2, n.constant(dims({}), {1}))), CALL(setInput(3, n.constant(dims({1}), {1}))),
                    CALL(setInput(1, n.constant(Dims2(3, 1), {1, 1, 1}))), CALL(setInput(5, *l.getInput(0)))}}});
}

// Two positions of one head of four elements: the second turns by a right angle, x1' = -x2 and x2' = x1.
inline void add_rotation(Table& table) {
  add<IRotaryEmbeddingLayer>(
      table, "IRotaryEmbeddingLayer",
      [](Net& n) {
        return n.network->addRotaryEmbedding(n.input(Dims4(1, 1, 2, 4)), n.constant(Dims3(1, 2, 2), {1, 1, 0, 0}),
                                             n.constant(Dims3(1, 2, 2), {0, 0, 1, 1}), false, 0);
      },
      {{"setInterleaved", DOES(setInterleaved(true), l.getInterleaved()), "f32[1, 1, 2, 4]: -2 -1 0 1 -3 2 -5 4", {}},
       {"setRotaryEmbeddingDim",
        [](Net& n, IRotaryEmbeddingLayer& l) {
          l.setInput(1, n.constant(Dims2(3, 1), {5, 0, 1})), l.setInput(2, n.constant(Dims2(3, 1), {5, 1, 0}));
          l.setInput(3, n.shaped(Dims2(1, 2), {2, 1}));
          return l.setRotaryEmbeddingDim(2) && l.getRotaryEmbeddingDim() == 2;
        },
        "f32[1, 1, 2, 4]: -2 -1 0 1 -3 2 4 5",
        {CALL(setRotaryEmbeddingDim(3)), CALL(setRotaryEmbeddingDim(-2)), CALL(setRotaryEmbeddingDim(2)),
         CALL(setRotaryEmbeddingDim(6)), CALL(setInput(1, n.constant(Dims2(1, 2), {1, 1}))),
         CALL(setInput(0, n.input(Dims3(1, 2, 4)))), CALL(setInput(3, n.shaped(Dims2(1, 2), {0, 0})))}},
       {"setInput",
        DOES(setInput(0, *n.network->addUnary(*l.getInput(0), UnaryOperation::kNEG)->getOutput(0)),
             l.getInput(0) != n.network->getInput(0)),
        "f32[1, 1, 2, 4]: 2 1 0 -1 4 5 -2 -3",
        {CALL(setInput(4, *l.getInput(0)))}}});
}

}  // namespace nvinfer1::layers
