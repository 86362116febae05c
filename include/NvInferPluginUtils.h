// SPDX-License-Identifier: Apache-2.0
// Parameter structs of some standard plugins.
#ifndef NV_INFER_PLUGIN_UTILS_H
#define NV_INFER_PLUGIN_UTILS_H

#include "NvInferRuntimeCommon.h"

namespace nvinfer1 {
namespace plugin {

#if NV_TENSORRT_MAJOR < 11
// How boxes are written: two corners; centre and size; corners as offsets of sizes; centre and size with y first.
enum class CodeTypeSSD : int32_t {
  CORNER = 0,
  CENTER_SIZE = 1,
  CORNER_SIZE = 2,
  TF_CENTER = 3,
};

// DetectionOutput of SSD.
struct DetectionOutputParameters {
  bool shareLocation;            // between classes
  bool varianceEncodedInTarget;  // the boxes are scaled by their variances already
  int32_t backgroundLabelId;     // -1: none
  int32_t numClasses;
  int32_t topK;      // boxes per class that suppression looks at
  int32_t keepTopK;  // boxes per image that remain
  float confidenceThreshold;
  float nmsThreshold;  // of the intersection over the union
  CodeTypeSSD codeType;
  int32_t inputOrder[3];  // of locations, confidences and prior boxes
  bool confSigmoid;       // of the confidences
  bool isNormalized;      // coordinates are in [0, 1]
  bool isBatchAgnostic;   // all images have the same prior boxes
};

// BatchedNMS. Fields as above.
struct NMSParameters {
  bool shareLocation;
  int32_t backgroundLabelId;
  int32_t numClasses;
  int32_t topK;
  int32_t keepTopK;
  float scoreThreshold;
  float iouThreshold;
  bool isNormalized;
};
#endif

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
