# SPDX-License-Identifier: Apache-2.0
"""Plugins that are classes of Python, on the CPU device: results, fields, sizes, tactics, resources and lifetimes."""
import gc
import pathlib
import subprocess
import sys
import unittest

import numpy as np
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pad_plugin import Pad, PadCreator, WithPlugins, trt  # noqa: E402


class ClassPlugins(WithPlugins):
    def test_result(self):
        self.register(PadCreator())
        plan = self.plan(self.pad(1, 2))
        self.assertIsNotNone(plan, (self.logger.errors, self.seen))
        x, y = np.random.default_rng(0).standard_normal((2, 3), np.float32), np.empty((2, 6), np.float32)
        self.assertTrue(self.run_plan(plan, x, outputs=[y]), self.logger.errors)
        np.testing.assert_array_equal(y, np.pad(x, [(0, 0), (1, 2)]))
        self.assertIn(('attach', True), Pad.events)
        self.assertEqual(self.seen, [])

    def test_open_sizes(self):
        self.register(PadCreator())
        profile = self.builder.create_optimization_profile()
        profile.set_shape('x0', (1, 3), (2, 3), (8, 3))
        self.config.add_optimization_profile(profile)
        plan = self.plan(self.pad(0, 1), shape=(-1, 3))
        self.assertIn(('configure', (1, 3), (2, 3), (8, 3)), Pad.events)
        for rows in (1, 8, 3):
            x, y = np.random.default_rng(rows).standard_normal((rows, 3), np.float32), np.empty((rows, 4), np.float32)
            self.assertTrue(self.run_plan(plan, x, outputs=[y]), self.logger.errors)
            np.testing.assert_array_equal(y, np.pad(x, [(0, 0), (0, 1)]))

    def test_types(self):
        self.register(PadCreator())
        for type in (trt.float32, trt.float16, trt.int32, trt.int64, trt.bool, trt.uint8):
            plan = self.plan(self.pad(1, 1), types=(type,))
            self.assertIsNotNone(plan, self.logger.errors)
            x = np.random.default_rng(1).integers(0, 2, (2, 3)).astype(trt.nptype(type))
            y = np.empty((2, 5), x.dtype)
            self.assertTrue(self.run_plan(plan, x, outputs=[y]), self.logger.errors)
            np.testing.assert_array_equal(y, np.pad(x, [(0, 0), (1, 1)]))

    def test_operator_of_a_model(self):
        self.register(PadCreator())
        node = helper.make_node('Pad', ['x0'], ['y0'], domain='tests', plugin_namespace='tests', amounts=[2, 1])
        graph = helper.make_graph([node], 'test', [helper.make_tensor_value_info('x0', TensorProto.FLOAT, [2, 3])],
                                  [helper.make_tensor_value_info('y0', TensorProto.FLOAT, [2, 6])])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('tests', 1)])
        model.ir_version = 8
        network = self.builder.create_network(0)
        parser = trt.OnnxParser(network, self.logger)
        self.assertTrue(parser.parse(model.SerializeToString()), self.logger.errors)
        self.assertIsInstance(network[0], trt.IPluginV3Layer)
        np.testing.assert_array_equal(network[0].plugin.amounts, [2, 1])
        plan = self.builder.build_serialized_network(network, self.config)
        x, y = np.ones((2, 3), np.float32), np.empty((2, 6), np.float32)
        self.assertTrue(self.run_plan(plan, x, outputs=[y]), self.logger.errors)
        np.testing.assert_array_equal(y, np.pad(x, [(0, 0), (2, 1)]))

    def test_size_that_the_plugin_computes(self):
        class NonZero(Pad):
            def __init__(self, fields=None):
                super().__init__(fields)
                self.num_outputs = 2

            def get_output_data_types(self, input_types):
                return [input_types[0], trt.int64]

            def get_output_shapes(self, inputs, shape_inputs, expr_builder):
                half = expr_builder.operation(trt.DimensionOperation.FLOOR_DIV, inputs[0][0], expr_builder.constant(2))
                return [(expr_builder.declare_size_tensor(1, half, inputs[0][0]),), trt.DimsExprs(0)]

            def supports_format_combination(self, pos, in_out, num_inputs):
                return in_out[pos].desc.format == trt.TensorFormat.LINEAR

            def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
                x = trt.array_at(inputs[0], input_desc[0])
                found = x[x != 0]
                desc = output_desc[0]
                desc.dims = (len(found),)
                trt.array_at(outputs[0], desc)[:] = found
                trt.array_at(outputs[1], output_desc[1])[...] = len(found)

        self.register(PadCreator(NonZero))
        plan = self.plan(NonZero(), shape=(6,))
        self.assertIsNotNone(plan, (self.logger.errors, self.seen))
        x, y, n = np.array([0, 1, 0, 2, 3, 0], np.float32), np.empty(6, np.float32), np.empty((), np.int64)
        self.assertTrue(self.run_plan(plan, x, outputs=[y, n]), (self.logger.errors, self.seen))
        self.assertEqual((y[:3].tolist(), n), ([1, 2, 3], 3))

    def test_tactics_and_workspace(self):
        class Timed(Pad):
            timing_cache_id = 'timed'
            used = []

            def get_valid_tactics(self):
                return [7, 9]

            def set_tactic(self, tactic):
                self.tactic = tactic

            def get_workspace_size(self, input_desc, output_desc):
                return 1000

            def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
                self.used.append((self.tactic, workspace % 256, stream))
                super().enqueue(input_desc, output_desc, inputs, outputs, workspace, stream)

        self.register(PadCreator(Timed))
        self.assertIsNotNone(plan := self.plan(Timed()), (self.logger.errors, self.seen))
        self.assertEqual({tactic for tactic, _, _ in Timed.used}, {7, 9})
        x, y = np.ones((2, 3), np.float32), np.empty((2, 3), np.float32)
        self.assertTrue(self.run_plan(plan, x, outputs=[y]), self.logger.errors)
        self.assertIn(Timed.used[-1], ((7, 0, 0), (9, 0, 0)))

    def test_output_in_place(self):
        class Doubled(Pad):
            def get_output_shapes(self, inputs, shape_inputs, expr_builder):
                return inputs

            def get_aliased_input(self, output_index):
                return 0

            def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
                assert inputs == outputs
                trt.array_at(outputs[0], output_desc[0])[:] *= 2

        self.register(PadCreator(Doubled))
        self.config.set_preview_feature(trt.PreviewFeature.ALIASED_PLUGIN_IO_10_03, True)
        self.assertIsNotNone(plan := self.plan(Doubled()), (self.logger.errors, self.seen))
        x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.empty((2, 3), np.float32)
        self.assertTrue(self.run_plan(plan, x, outputs=[y]), (self.logger.errors, self.seen))
        np.testing.assert_array_equal(y, np.arange(6).reshape(2, 3) * 2)


class Registry(WithPlugins):
    def test_creators(self):
        registry = trt.get_plugin_registry()
        creator = self.register(PadCreator())
        self.assertIs(registry.get_creator('Pad', '1', 'tests'), creator)
        self.assertIn(creator, registry.all_creators)
        self.assertIn(creator, self.builder.get_plugin_registry().all_creators_recursive)
        self.assertIsNone(registry.get_creator('Pad', '2', 'tests'))
        self.assertFalse(registry.register_creator(PadCreator(), 'tests'))
        self.assertFalse(registry.deregister_creator(PadCreator()))
        with self.assertRaisesRegex(TypeError, 'IPluginCreatorV3One is wanted'):
            registry.register_creator('creator')

    def test_creators_of_a_runtime(self):
        self.assertIsNotNone(plan := self.plan(self.pad(1, 0)))
        runtime = trt.Runtime(self.logger)
        runtime.get_plugin_registry().register_creator(PadCreator(), 'tests')
        self.assertIsNotNone(runtime.deserialize_cuda_engine(plan), self.logger.errors)
        self.assertIsNone(trt.get_plugin_registry().get_creator('Pad', '1', 'tests'))

    def test_plugins_are_destroyed_with_the_library_s_copies(self):
        destroyed = []

        class Destroyed(Pad):
            def destroy(self):
                destroyed.append(self)

        plugin = Destroyed()
        network = self.network(plugin)
        self.assertEqual(destroyed, [])
        clone = network[0].plugin
        self.assertIsNot(clone, plugin)
        del network
        gc.collect()
        self.assertTrue(any(each is clone for each in destroyed))
        self.assertFalse(any(each is plugin for each in destroyed))

    def test_resources(self):
        class Shared(trt.IPluginResource):
            released = 0

            def clone(self):
                registry.get_creator('Pad', '1', 'tests')  # without waiting for the call that asks for the clone
                return Shared()

            def release(self):
                Shared.released += 1

        registry = trt.get_plugin_registry()
        first = registry.acquire_plugin_resource('key', Shared())
        self.assertIsInstance(first, Shared)
        self.assertIs(registry.acquire_plugin_resource('key', Shared()), first)
        self.assertEqual([registry.release_plugin_resource('key') for _ in range(2)], [0, 0])
        self.assertEqual(Shared.released, 1)
        self.assertNotEqual(registry.release_plugin_resource('key'), 0)

    def test_fields(self):
        for type, dtype in ((trt.PluginFieldType.FLOAT16, np.float16), (trt.PluginFieldType.FLOAT32, np.float32),
                            (trt.PluginFieldType.FLOAT64, np.float64), (trt.PluginFieldType.INT8, np.int8),
                            (trt.PluginFieldType.INT16, np.int16), (trt.PluginFieldType.INT64, np.int64)):
            field = trt.PluginField('f', np.arange(3, dtype=dtype), type)
            self.assertEqual((field.size, field.data.dtype, field.data.tolist()), (3, dtype, [0, 1, 2]))
        text = trt.PluginField('mode', b'reflect', trt.PluginFieldType.CHAR)
        self.assertEqual((text.size, text.data.tobytes()), (7, b'reflect'))
        for value, error in (('text', TypeError), (b'abc', ValueError)):
            with self.assertRaises(error):
                trt.PluginField('f', value, trt.PluginFieldType.INT32)

    def test_nothing_stays(self):
        gc.collect()
        before = len(Pad.alive)
        creator = self.register(PadCreator())
        plan = self.plan(self.pad(1, 1))
        x, y = np.ones((2, 3), np.float32), np.empty((2, 5), np.float32)
        self.assertTrue(self.run_plan(plan, x, outputs=[y]))
        trt.get_plugin_registry().deregister_creator(creator)
        gc.collect()
        self.assertEqual(len(Pad.alive), before)

    def test_interpreters_end_with_plugins_alive(self):
        script = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import python_plugin_test as test
case = test.ClassPlugins('test_result')
case.setUp()
test.trt.get_plugin_registry().register_creator(test.PadCreator(), 'tests')
network = case.network(case.pad(1, 1))
runtime = test.trt.Runtime(case.logger)
runtime.get_plugin_registry().register_creator(test.PadCreator(), 'tests')
engine = runtime.deserialize_cuda_engine(case.builder.build_serialized_network(network, case.config))
context = engine.create_execution_context()
print(context is not None)
"""
        ran = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, 'True\n', ''))


if __name__ == '__main__':
    unittest.main()
