# SPDX-License-Identifier: Apache-2.0
"""What methods of plugins raise, return wrongly or leave out: reported, and the call fails with the layer and the method."""
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pad_plugin import Pad, PadCreator, WithPlugins, trt  # noqa: E402


class Errors(WithPlugins):
    def test_exceptions_of_each_method(self):
        def broken(self, *arguments):
            raise KeyError('broken')
        self.config.set_preview_feature(trt.PreviewFeature.ALIASED_PLUGIN_IO_10_03, True)
        for method, told in (('get_output_data_types', 'getOutputDataTypes'), ('get_output_shapes', 'getOutputShapes'),
                             ('configure_plugin', 'configurePlugin'), ('get_fields_to_serialize', 'getFieldsToSerialize'),
                             ('supports_format_combination', 'supportsFormatCombination'),
                             ('get_workspace_size', 'getWorkspaceSize'), ('get_valid_tactics', 'getNbTactics'),
                             ('get_aliased_input', 'getAliasedInput'), ('clone', 'clone'),
                             ('get_capability_interface', 'getCapabilityInterface')):
            with self.subTest(method):
                self.seen.clear()
                self.logger.errors.clear()
                plan = self.plan(type('Broken', (Pad,), {method: broken})())
                self.assertIsNone(plan)
                self.assertIn((KeyError, f'[ERROR] Exception caught in {method}()'), self.seen)
                self.assertIn(told, ' '.join(self.logger.errors))

    def test_exceptions_when_it_runs(self):
        x, y = np.ones((2, 3), np.float32), np.empty((2, 3), np.float32)
        for method in ('enqueue', 'on_shape_change', 'attach_to_context'):
            class Broken(Pad):
                armed = False

            def broken(self, *arguments, method=method):
                if Broken.armed:
                    raise KeyError('broken')
                return getattr(Pad, method)(self, *arguments)
            setattr(Broken, method, broken)
            with self.subTest(method):
                creator = self.register(PadCreator(Broken))
                self.assertIsNotNone(plan := self.plan(Broken()))
                Broken.armed = True
                if method == 'attach_to_context':
                    engine = trt.Runtime(self.logger).deserialize_cuda_engine(plan)
                    self.assertIsNone(engine.create_execution_context())
                else:
                    self.assertFalse(self.run_plan(plan, x, outputs=[y]))
                self.assertIn((KeyError, f'[ERROR] Exception caught in {method}()'), self.seen)
                trt.get_plugin_registry().deregister_creator(creator)

    def test_wrong_answers(self):
        for method, answer, told in (
                ('get_output_data_types', [], 'getOutputDataTypes'),
                ('get_output_data_types', ['float'], 'getOutputDataTypes'),
                ('get_output_shapes', 3, 'getOutputShapes'),
                ('get_capability_interface', None, 'getCapabilityInterface'),
                ('get_fields_to_serialize', [1], 'getFieldsToSerialize'), ('clone', 'no plugin', 'clone'),
                ('get_valid_tactics', [3, 3], 'getValidTactics'), ('get_workspace_size', -1, 'getWorkspaceSize')):
            with self.subTest((method, answer)):
                self.logger.errors.clear()
                self.assertIsNone(self.plan(type('Wrong', (Pad,), {method: lambda self, *_, answer=answer: answer})()))
                self.assertIn(told, ' '.join(self.logger.errors))

    def test_fields_whose_type_changes(self):
        class Wrong(Pad):
            def get_fields_to_serialize(self):
                field = trt.PluginField('amounts', np.zeros(2, np.int8), trt.PluginFieldType.INT8)
                field.type = trt.PluginFieldType.FLOAT64
                return trt.PluginFieldCollection([field])
        self.assertIsNone(self.plan(Wrong()))
        self.assertIn('getFieldsToSerialize', ' '.join(self.logger.errors))

    def test_what_a_plugin_leaves_out(self):
        class Empty(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
            def get_capability_interface(self, type):
                return self
        self.assertIsNone(self.plan(Empty()))
        self.assertTrue(self.seen and {kind for kind, _ in self.seen} <= {NotImplementedError, AttributeError}, self.seen)
        with self.assertRaisesRegex(AttributeError, 'Empty must set num_outputs'):
            Empty().num_outputs
        with self.assertRaisesRegex(TypeError, 'IPluginV3 is wanted'):
            self.network('no plugin')

    def test_no_creator(self):
        self.assertIsNotNone(plan := self.plan(Pad()))
        self.assertIsNone(trt.Runtime(self.logger).deserialize_cuda_engine(plan))
        self.assertIn("plugin 'Pad'", self.logger.errors[-1])


if __name__ == '__main__':
    unittest.main()
