# SPDX-License-Identifier: Apache-2.0
"""A plugin of Python for the tests, its creator, and what tests of plugins share."""
import os
import pathlib
import sys
import unittest
import weakref

import numpy as np

PACKAGES = pathlib.Path(os.environ['LATHE_BUILD_DIR']).resolve() / 'python'
sys.path.insert(0, str(PACKAGES))
from lathe import tensorrt as trt  # noqa: E402


class Recorder(trt.ILogger):
    def __init__(self):
        super().__init__()
        self.errors = []

    def log(self, severity, msg):
        if severity <= trt.ILogger.ERROR:
            self.errors.append(msg)


class Pad(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuildV2, trt.IPluginV3OneRuntime):
    """Pads the last dimension with zeros, `before` and `after`, as a plugin for TensorRT is written in Python."""

    alive = weakref.WeakSet()
    events = []

    def __init__(self, fields=None):
        trt.IPluginV3.__init__(self)
        trt.IPluginV3OneCore.__init__(self)
        trt.IPluginV3OneBuildV2.__init__(self)
        trt.IPluginV3OneRuntime.__init__(self)
        Pad.alive.add(self)
        self.plugin_name, self.plugin_version, self.plugin_namespace = 'Pad', '1', 'tests'
        self.num_outputs = 1
        self.amounts = np.zeros(2, np.int32)
        for field in fields or ():
            if field.name == 'amounts':
                self.amounts = field.data

    def get_capability_interface(self, type):
        return self

    def get_output_data_types(self, input_types):
        return [input_types[0]]

    def get_output_shapes(self, inputs, shape_inputs, expr_builder):
        shape = trt.DimsExprs(inputs[0])
        amount = expr_builder.constant(int(self.amounts.sum()))
        shape[-1] = expr_builder.operation(trt.DimensionOperation.SUM, inputs[0][-1], amount)
        return [shape]

    def configure_plugin(self, input_desc, output_desc):
        self.events.append(('configure', tuple(input_desc[0].min), tuple(input_desc[0].opt), tuple(input_desc[0].max)))

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].desc.format == trt.TensorFormat.LINEAR and in_out[pos].desc.type == in_out[0].desc.type

    def get_fields_to_serialize(self):
        return trt.PluginFieldCollection([trt.PluginField('amounts', self.amounts, trt.PluginFieldType.INT32)])

    def on_shape_change(self, input_desc, output_desc):
        self.shape = tuple(input_desc[0].dims)

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        x, y = trt.array_at(inputs[0], input_desc[0]), trt.array_at(outputs[0], output_desc[0])
        y[:] = np.pad(x, [(0, 0)] * (x.ndim - 1) + [tuple(self.amounts)])

    def attach_to_context(self, resource_context):
        self.events.append(('attach', resource_context.runs_on_host))
        return self.clone()

    def clone(self):
        cloned = type(self)()
        cloned.__dict__.update(self.__dict__)
        return cloned


class PadCreator(trt.IPluginCreatorV3One):
    def __init__(self, plugin=Pad):
        super().__init__()
        self.name, self.plugin_version, self.plugin_namespace = 'Pad', '1', 'tests'
        self.field_names = trt.PluginFieldCollection(
            [trt.PluginField('amounts', np.zeros(0, np.int32), trt.PluginFieldType.INT32)])
        self.plugin = plugin

    def create_plugin(self, name, field_collection, phase):
        return self.plugin(field_collection)


class WithPlugins(unittest.TestCase):
    def setUp(self):
        self.logger = Recorder()
        self.builder = trt.Builder(self.logger)
        self.config = self.builder.create_builder_config()
        self.seen = []
        hook = sys.unraisablehook
        sys.unraisablehook = lambda report: self.seen.append((report.exc_type, report.object))
        self.addCleanup(setattr, sys, 'unraisablehook', hook)
        Pad.events.clear()

    def register(self, creator):
        registry = trt.get_plugin_registry()
        self.assertTrue(registry.register_creator(creator, 'tests'))
        self.addCleanup(registry.deregister_creator, creator)
        return creator

    def network(self, plugin, shape=(2, 3), types=(trt.float32,)):
        network = self.builder.create_network(0)
        inputs = [network.add_input(f'x{i}', type, shape) for i, type in enumerate(types)]
        layer = network.add_plugin_v3(inputs, [], plugin)
        if layer is None:
            return None
        for i in range(layer.num_outputs):
            layer.get_output(i).name = f'y{i}'
            network.mark_output(layer.get_output(i))
        return network

    def plan(self, plugin, **settings):
        network = self.network(plugin, **settings)
        return None if network is None else self.builder.build_serialized_network(network, self.config)

    def run_plan(self, plan, *inputs, outputs):
        engine = trt.Runtime(self.logger).deserialize_cuda_engine(plan)
        self.assertIsNotNone(engine, self.logger.errors)
        context = engine.create_execution_context()
        for i, array in enumerate(inputs):
            context.set_input_shape(f'x{i}', array.shape)
            context.set_tensor_address(f'x{i}', array.ctypes.data)
        for i, array in enumerate(outputs):
            context.set_tensor_address(f'y{i}', array.ctypes.data)
        return context.execute_async_v3(0)

    def pad(self, before, after):
        plugin = Pad()
        plugin.amounts = np.array([before, after], np.int32)
        return plugin
