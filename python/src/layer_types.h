// SPDX-License-Identifier: Apache-2.0
// Which class a network's layers have in Python.
#ifndef LATHE_PYTHON_LAYER_TYPES_H
#define LATHE_PYTHON_LAYER_TYPES_H

#include "bind.h"

namespace lathe::python {

// What a network gives for a layer whose class has a `type` of its own: that class, where `type` is the layer's, as
// programs expect of a layer whose class they do not know yet. They set __class__ to the class for that type, as all
// programs for TensorRT do, and get its `type` then.
struct NetworkActivationLayer : nvinfer1::IActivationLayer {};
struct NetworkPoolingLayer : nvinfer1::IPoolingLayer {};

// A layer of the network as an object of the class for its type; None for null.
nb::object layer_of(nb::handle network, nvinfer1::ILayer* layer);

}  // namespace lathe::python

#endif  // LATHE_PYTHON_LAYER_TYPES_H
