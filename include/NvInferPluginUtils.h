// SPDX-License-Identifier: Apache-2.0
// Parameter structs of some standard plugins.
#ifndef NV_INFER_PLUGIN_UTILS_H
#define NV_INFER_PLUGIN_UTILS_H

#include "NvInferRuntimeCommon.h"

namespace nvinfer1 {
namespace plugin {

// PriorBox: box shapes per position, sizes in pixels.
struct PriorBoxParameters {
  float *minSize, *maxSize, *aspectRatios;
  int32_t numMinSize, numMaxSize, numAspectRatios;
  bool flip;  // also use the reciprocal of every ratio
  bool clip;  // to [0, 1]
  float variance[4];
  int32_t imgH, imgW;  // 0: taken from the input
  float stepH, stepW;  // 0: derived from the sizes
  float offset;        // of box centres, in steps
};

// Region proposal and RoI pooling of Faster R-CNN.
struct RPROIParams {
  int32_t poolingH;
  int32_t poolingW;
  int32_t featureStride;
  int32_t preNmsTop;
  int32_t nmsMaxOut;
  int32_t anchorsRatioCount;
  int32_t anchorsScaleCount;
  float iouThreshold;
  float minBoxSize;
  float spatialScale;
};

// Anchors of one feature map, scales in [0, 1] of the image.
struct GridAnchorParameters {
  float minSize, maxSize;
  float* aspectRatios;
  int32_t numAspectRatios, H, W;
  float variance[4];
};

// Class hierarchy for the softmax of the Region plugin; all arrays hold n entries, group arrays `groups`.
struct softmaxTree {
  int32_t* leaf;
  int32_t n;
  int32_t* parent;
  int32_t* child;
  int32_t* group;
  char** name;

  int32_t groups;
  int32_t* groupSize;
  int32_t* groupOffset;
};

// Region: boxes per cell, coordinates per box, classes; smTree may be null.
struct RegionParameters {
  int32_t num;
  int32_t coords;
  int32_t classes;
  softmaxTree* smTree;
};

}  // namespace plugin
}  // namespace nvinfer1

#endif  // NV_INFER_PLUGIN_UTILS_H
