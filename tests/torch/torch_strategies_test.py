# SPDX-License-Identifier: Apache-2.0
"""Strategies of runs as with statements, for both ways to compile."""
import pathlib
import unittest
import unittest.mock

import torch
from pytorch import Cases, Perceptron

import lathe.torch
from lathe import _tensorrt
from lathe import tensorrt as trt
from lathe.torch import _part

SPECIALIZATION, GRAPHS = trt.DynamicShapesKernelSpecializationStrategy, trt.CudaGraphStrategy


class Strategies(Cases):
    def setUp(self):
        super().setUp()
        self.model, self.x = Perceptron().eval(), torch.randn(3, 4)
        self.compiled = {'backend': torch.compile(self.model, backend='lathe'), 'module': lathe.torch.compile(self.model, (self.x,))}
        for function in self.compiled.values():
            function(self.x)
        self.wider = torch.randn(5, 4)
        self.of_wider = self.part_of(lathe.torch.compile(self.model, (self.wider,))).plan
        # From here on nothing may be built.
        self.enterContext(unittest.mock.patch.object(_tensorrt, '_artifact_plan', side_effect=AssertionError('a build')))
        self.seen = []
        choose = _part.Part._choose

        def noted(part, wanted):
            choose(part, wanted)
            config = part._context.get_runtime_config()
            self.seen.append((config.dynamic_shapes_kernel_specialization_strategy, config.cuda_graph_strategy))
        self.enterContext(unittest.mock.patch.object(_part.Part, '_choose', noted))

    @staticmethod
    def part_of(module):
        return next(each for each in module.modules() if isinstance(each, _part.Part))

    def check_runs(self, way):
        self.assert_same(self.compiled[way](self.x), self.model(self.x))

    # S237, S235.
    def test_each_strategy(self):
        for way in self.compiled:
            for specialization in SPECIALIZATION:
                for graphs in GRAPHS:
                    with self.subTest(way, specialization=specialization, graphs=graphs):
                        with lathe.torch.strategies(specialization=specialization), lathe.torch.strategies(cuda_graphs=graphs):
                            self.check_runs(way)
                            self.assertEqual(self.seen[-1], (specialization, graphs))
                            self.check_runs(way)
                        self.check_runs(way)
            self.assertEqual(len(self.seen), 2 * len(SPECIALIZATION) * len(GRAPHS), 'in and out of each')
            self.seen.clear()

    # S237.
    def test_after_an_exception(self):
        with self.assertRaises(ZeroDivisionError), lathe.torch.strategies(specialization=SPECIALIZATION.NONE):
            self.check_runs('module')
            with self.assertRaises(KeyError), lathe.torch.strategies(specialization=SPECIALIZATION.EAGER):
                self.check_runs('module')
                raise KeyError
            self.check_runs('module')
            self.assertEqual([each for each, _ in self.seen], [SPECIALIZATION.NONE, SPECIALIZATION.EAGER, SPECIALIZATION.NONE])
            raise ZeroDivisionError
        self.assertEqual(_part._strategies.get(), _part._DEFAULT)
        self.check_runs('module')

    # S237: a plan for further sizes takes the place of one in the midst of a run.
    def test_a_plan_that_is_made_meanwhile(self):
        part = self.part_of(self.compiled['module'])
        part.rebuild = lambda sizes: self.of_wider
        with lathe.torch.strategies(cuda_graphs=GRAPHS.WHOLE_GRAPH_CAPTURE):
            result = part(self.wider)
            self.assertEqual(part.plan, self.of_wider)
            self.assertEqual(part._context.get_runtime_config().cuda_graph_strategy, GRAPHS.WHOLE_GRAPH_CAPTURE)
        self.assert_same(result[0] if isinstance(result, list) else result, self.model(self.wider))

    # S225, S237: nothing is compiled for a CPU, so that no file is written.
    def test_a_runtime_cache_on_a_cpu(self):
        path = pathlib.Path(self.cache, 'kernels.cache')
        with lathe.torch.strategies(runtime_cache=path):
            self.check_runs('module')
        self.assertFalse(path.exists())
        self.check_runs('module')


if __name__ == '__main__':
    unittest.main()
