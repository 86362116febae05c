# SPDX-License-Identifier: Apache-2.0
"""lathe.tensorrt.plugin: plugins that are functions with decorators, on the CPU device."""
import pathlib
import subprocess
import sys
import unittest
import warnings

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pad_plugin import PACKAGES, WithPlugins, trt  # noqa: E402
from lathe.tensorrt import plugin as trtp  # noqa: E402

TUNED = []


@trtp.register('tests::scale')
def scale(x: trtp.TensorDesc, factor: float, offsets: npt.NDArray[np.float32], name: str = 'plain',
          double: bool = False) -> trtp.TensorDesc:
    return x.like()


@trtp.impl('tests::scale')
def scale_impl(x: trtp.Tensor, factor: float, offsets: npt.NDArray[np.float32], double: bool, outputs: tuple[trtp.Tensor],
               stream: int) -> None:
    np.asarray(outputs[0])[...] = np.asarray(x) * factor * (2 if double else 1) + offsets


@trtp.register('tests::blocks')
def blocks(x: trtp.TensorDesc, size: int) -> tuple[trtp.TensorDesc, trtp.TensorDesc]:
    rows, columns = x.shape_expr
    return (trtp.from_shape_expr((trtp.cdiv(rows, size), trtp.max(columns, 2) * 2 - 1), trt.float32),
            trtp.from_shape_expr((x.numel() // 2 + 1,), trt.int32))


@trtp.impl('tests::blocks')
def blocks_impl(x: trtp.Tensor, outputs: tuple[trtp.Tensor, trtp.Tensor], stream: int) -> None:
    for output in outputs:
        np.asarray(output)[...] = output.numel()


@trtp.register('tests::nonzero')
def nonzero(x: trtp.TensorDesc) -> tuple[trtp.TensorDesc, trtp.SizeTensorDesc]:
    count = trtp.size_tensor(x.numel() // 2, x.numel())
    return trtp.from_shape_expr((count.expr(),), x.dtype), count


@trtp.impl('tests::nonzero')
def nonzero_impl(x: trtp.Tensor, outputs: tuple[trtp.Tensor, trtp.Tensor], stream: int) -> None:
    found = np.asarray(x)[np.asarray(x) != 0]
    np.asarray(outputs[1])[...] = found.size
    memory = {**outputs[0]._interface(), 'shape': found.shape}
    np.asarray(type('View', (), {'__array_interface__': memory})())[:] = found


@trtp.register('tests::tuned')
def tuned(x: trtp.TensorDesc) -> trtp.TensorDesc:
    return x.like()


@trtp.impl('tests::tuned')
def tuned_impl(x: trtp.Tensor, outputs: tuple[trtp.Tensor], stream: int, tactic: int) -> None:
    TUNED.append((x.dtype, x.format, tactic))
    np.asarray(outputs[0])[...] = np.asarray(x)


@trtp.autotune('tests::tuned')
def tuned_autotune(x: trtp.TensorDesc, outputs: tuple[trtp.TensorDesc]) -> list[trtp.AutoTuneCombination]:
    return [trtp.AutoTuneCombination('FP32|FP16, FP32|FP16', 'LINEAR', [1, 2]), trtp.AutoTuneCombination('INT32, INT32')]


@trtp.register('tests::doubled')
def doubled(x: trtp.TensorDesc) -> trtp.TensorDesc:
    return x.aliased()


@trtp.impl('tests::doubled')
def doubled_impl(x: trtp.Tensor, outputs: tuple[trtp.Tensor], stream: int) -> None:
    assert x.data_ptr == outputs[0].data_ptr
    np.asarray(outputs[0])[...] *= 2


class FunctionPlugins(WithPlugins):
    def plan_of(self, definition, shape=(2, 3), type=trt.float32, **attributes):
        network = self.builder.create_network(0)
        layer = network.add_plugin(definition(network.add_input('x0', type, shape), **attributes))
        self.assertIsNotNone(layer, (self.logger.errors, self.seen))
        for i in range(layer.num_outputs):
            layer.get_output(i).name = f'y{i}'
            network.mark_output(layer.get_output(i))
        plan = self.builder.build_serialized_network(network, self.config)
        self.assertIsNotNone(plan, (self.logger.errors, self.seen))
        return plan

    def check_run(self, plan, x, *outputs):
        self.assertTrue(self.run_plan(plan, x, outputs=outputs), (self.logger.errors, self.seen))

    def test_attributes(self):
        offsets = np.array([1, 2, 3], np.float32)
        x = np.random.default_rng(0).standard_normal((2, 3), np.float32)
        for double, factor in ((False, 2), (True, 0.5)):
            y = np.empty_like(x)
            self.check_run(self.plan_of(trtp.op.tests.scale, factor=factor, offsets=offsets, double=double), x, y)
            np.testing.assert_allclose(y, x * factor * (1 + double) + offsets, rtol=1e-6)

    def test_shapes(self):
        profile = self.builder.create_optimization_profile()
        profile.set_shape('x0', (1, 1), (4, 3), (9, 9))
        self.config.add_optimization_profile(profile)
        plan = self.plan_of(trtp.op.tests.blocks, shape=(-1, -1), size=4)
        for rows, columns in ((1, 1), (5, 3), (9, 9)):
            shapes = (-(-rows // 4), max(columns, 2) * 2 - 1), (rows * columns // 2 + 1,)
            y, z = np.zeros(shapes[0], np.float32), np.zeros(shapes[1], np.int32)
            self.check_run(plan, np.zeros((rows, columns), np.float32), y, z)
            self.assertTrue((y == y.size).all() and (z == z.size).all())

    def test_size_that_the_plugin_computes(self):
        x = np.array([[0, 1, 2], [0, 0, 3]], np.float32)
        y, n = np.zeros(6, np.float32), np.zeros((), np.int32)
        self.check_run(self.plan_of(trtp.op.tests.nonzero), x, y, n)
        self.assertEqual((y[:3].tolist(), n), ([1, 2, 3], 3))

    def test_autotune(self):
        for type, tactics in ((trt.float32, {1, 2}), (trt.float16, {1, 2}), (trt.int32, {0})):
            TUNED.clear()
            x = np.arange(6).astype(trt.nptype(type)).reshape(2, 3)
            y = np.empty_like(x)
            self.check_run(self.plan_of(trtp.op.tests.tuned, type=type), x, y)
            np.testing.assert_array_equal(y, x)
            self.assertEqual({tactic for _, _, tactic in TUNED}, tactics)
        network = self.builder.create_network(0)
        layer = network.add_plugin(trtp.op.tests.tuned(network.add_input('x', trt.int64, (2,))))
        network.mark_output(layer.get_output(0))
        self.assertIsNone(self.builder.build_serialized_network(network, self.config))
        self.assertIn('supportsFormatCombination() refuses input 0', self.logger.errors[-1])

    def test_output_in_place(self):
        self.config.set_preview_feature(trt.PreviewFeature.ALIASED_PLUGIN_IO_10_03, True)
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        y = np.empty_like(x)
        self.check_run(self.plan_of(trtp.op.tests.doubled), x, y)
        np.testing.assert_array_equal(y, np.arange(6).reshape(2, 3) * 2)

    def test_operator_of_a_model(self):
        node = helper.make_node('scale', ['x0'], ['y0'], domain='tests', plugin_namespace='tests', factor=3.0,
                                offsets=[1.0, 1.0, 1.0], name='scaled')
        node.attribute.append(helper.make_attribute('double', 0))
        graph = helper.make_graph([node], 'test', [helper.make_tensor_value_info('x0', TensorProto.FLOAT, [2, 3])],
                                  [helper.make_tensor_value_info('y0', TensorProto.FLOAT, [2, 3])])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('tests', 1)])
        model.ir_version = 8
        network = self.builder.create_network(0)
        parser = trt.OnnxParser(network, self.logger)
        self.assertTrue(parser.parse(model.SerializeToString()), (self.logger.errors, self.seen))
        plan = self.builder.build_serialized_network(network, self.config)
        x, y = np.ones((2, 3), np.float32), np.empty((2, 3), np.float32)
        self.check_run(plan, x, y)
        np.testing.assert_array_equal(y, np.full((2, 3), 4))

    def test_another_process_runs_the_plan(self):
        plan = self.plan_of(trtp.op.tests.scale, factor=2.0, offsets=np.zeros(3, np.float32))
        script = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import python_function_plugin_test as test, numpy as np
case = test.FunctionPlugins('test_attributes')
case.setUp()
y = np.empty((2, 3), np.float32)
case.check_run(sys.stdin.buffer.read(), np.ones((2, 3), np.float32), y)
print(y.sum())
"""
        ran = subprocess.run([sys.executable, '-c', script], input=bytes(plan), capture_output=True)
        self.assertEqual((ran.stdout, ran.stderr), (b'12.0\n', b''))

    def test_exceptions(self):
        @trtp.register('tests::broken')
        def broken(x: trtp.TensorDesc) -> trtp.TensorDesc:
            return x.like()

        x, y = np.ones((2, 3), np.float32), np.empty((2, 3), np.float32)
        self.assertFalse(self.run_plan(self.plan_of(trtp.op.tests.broken), x, outputs=[y]))
        self.assertEqual(set(self.seen), {(NotImplementedError, '[ERROR] Exception caught in enqueue()')})

    def test_import_name_of_the_original(self):
        script = 'import tensorrt, tensorrt.plugin as trtp, lathe.tensorrt.plugin; print(trtp is lathe.tensorrt.plugin)'
        ran = subprocess.run([sys.executable, '-c', script], env={'PYTHONPATH': f'{PACKAGES}:{PACKAGES}/compat'},
                             capture_output=True, text=True)
        self.assertEqual(ran.stdout, 'True\n', ran.stderr)


class Refusals(WithPlugins):
    def refused(self, text, plugin_id, function, decorator=trtp.register):
        with self.assertRaisesRegex(ValueError, text):
            decorator(plugin_id)(function)

    def test_identifiers(self):
        def function(x: trtp.TensorDesc) -> trtp.TensorDesc:
            return x.like()
        self.refused('form namespace::name', 'scale', function)
        self.refused('form namespace::name', 'a::b::c', function)
        self.refused('reserved', 'trt::scale', function)
        self.refused('registered already', 'tests::scale', function)
        self.refused('not registered', 'tests::unknown', function, trtp.impl)
        with self.assertRaisesRegex(AttributeError, "'tests::unknown'"):
            trtp.op.tests.unknown
        with self.assertRaisesRegex(AttributeError, "'unknown'"):
            trtp.op.unknown

    def test_signatures(self):
        T = trtp.TensorDesc

        def without_annotation(x) -> T: ...
        def without_return(x: T): ...
        def without_inputs(a: int) -> T: ...
        def input_last(x: T, a: int, y: T) -> T: ...
        def reserved(x: T, stream: int) -> T: ...
        def of_no_type(x: T, a: dict) -> T: ...
        def of_open_length(x: T) -> tuple[T, ...]: ...
        for function, text in ((without_annotation, 'no annotation'), (without_return, 'returns None'),
                               (without_inputs, 'plugins have inputs'), (input_last, 'inputs come first'),
                               (reserved, "called 'stream'"), (of_no_type, 'can be stored'), (of_open_length, 'returns')):
            self.refused(text, f'tests::{function.__name__}', function)

        def other_inputs(y, outputs, stream): ...
        def without_stream(x, outputs): ...
        def unknown(x, outputs, stream, more): ...
        for function, text in ((other_inputs, 'begins with the inputs'), (without_stream, 'lacks'), (unknown, "'more'")):
            self.refused(text, 'tests::scale', function, trtp.impl)
        self.refused('lacks', 'tests::scale', lambda x: None, trtp.autotune)

    def test_calls(self):
        network = self.builder.create_network(0)
        x = network.add_input('x', trt.float32, (2, 3))
        offsets = np.zeros(3, np.float32)
        for arguments, text in (({'factor': 1.0}, 'offsets'), ({'factor': 'one', 'offsets': offsets}, 'type float'),
                                ({'factor': 1.0, 'offsets': offsets.astype(int)}, 'flat array of float32'),
                                ({'factor': 1.0, 'offsets': offsets, 'more': 1}, 'more')):
            with self.assertRaisesRegex(ValueError, text):
                trtp.op.tests.scale(x, **arguments)
        with self.assertRaisesRegex(ValueError, 'tensor of a network'):
            trtp.op.tests.scale('x', factor=1.0, offsets=offsets)
        given = trtp.op.tests.tuned(x)
        with self.assertRaisesRegex(ValueError, 'not compiled'):
            network.add_plugin(given, aot=True)
        self.assertIsNotNone(network.add_plugin(lambda: given, aot=False))

    def test_combinations(self):
        for types, layouts in (('FP31', 'LINEAR'), ('FP32', 'SPIRAL'), ('FP32', '__class__'), ('FP32', ''), (None, 'LINEAR'),
                               ('FP32, FP32', 'LINEAR, LINEAR, LINEAR')):
            with self.assertRaises(ValueError):
                trtp.AutoTuneCombination(types, layouts)
        combination = trtp.AutoTuneCombination()
        combination.pos((0, 1), 'FP32|FP16')
        with self.assertRaises(ValueError):
            list(combination.rows(3))
        with self.assertRaisesRegex(ValueError, 'of one tensor'):
            combination.pos(2, 'INT32, FP32')
        combination.pos(2, 'INT32', 'LINEAR|HWC')
        combination.tactics([5])
        rows = list(combination.rows(3))
        self.assertEqual((len(rows), rows[0][1]), (4, [5]))
        combination.pos(2, 'INT8|INT32|BOOL')
        with self.assertRaisesRegex(ValueError, 'different numbers'):
            list(combination.rows(3))

    def test_kernels_compiled_ahead_warn(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            trtp.aot_impl('tests::scale')(lambda: None)
        self.assertIn('has no effect', str(caught[0].message))

    def test_sizes(self):
        two, open_size = trtp.ShapeExpr(2), trtp.ShapeExpr()
        self.assertEqual([(two + 3).constant_value(), (7 - two).constant_value(), (two * two).constant_value(),
                          (trtp.ShapeExpr(7) // 2).constant_value(), trtp.cdiv(7, 2).constant_value(),
                          trtp.max(two, 5).constant_value(), trtp.min(two, 5).constant_value()], [5, 5, 4, 3, 4, 5, 2])
        self.assertTrue(bool(two == 2) and not bool(two < 2))
        self.assertTrue((open_size + 1).is_fake and not two.is_fake)
        for question in (lambda: bool(open_size == 1), (open_size + 1).constant_value):
            with self.assertRaises(RuntimeError):
                question()
        self.assertEqual(trtp.from_shape_expr((np.int64(3), two), trt.float32).numel().constant_value(), 6)
        for wrong in (lambda: two + 1.5, lambda: two + None, lambda: trtp.cdiv('7', 2), lambda: trtp.ShapeExprs(9),
                      lambda: trtp.from_shape_expr((2.0,), trt.float32), lambda: trtp.size_tensor(None, 4)):
            with self.assertRaises(ValueError):
                wrong()


if __name__ == '__main__':
    unittest.main()
