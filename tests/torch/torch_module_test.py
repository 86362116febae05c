# SPDX-License-Identifier: Apache-2.0
"""lathe.torch.compile(): modules that are compiled ahead of time, saved, loaded and given other weights."""
import copy
import dataclasses
import io
import logging
import pickle
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

from pytorch import Cases, Perceptron, endless_with_open_sizes, lathe, torch


class Counting(torch.nn.Module):
    """Has a buffer that it writes, an operator that no engine computes, and a weight behind it."""

    def __init__(self):
        super().__init__()
        self.inner, self.scale = Perceptron(), torch.nn.Parameter(torch.rand(3))
        self.register_buffer('count', torch.zeros(3))

    def forward(self, x, power=2, *, shift=None):
        self.count.add_(1)
        y = torch.special.bessel_j0(self.inner(x)) * self.scale ** power + self.count
        return {'y': y if shift is None else y + shift, 'x': x}


class Apart(torch.nn.Module):
    """Two engines, with an operator between them that none computes."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Perceptron(), torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.second(torch.special.bessel_j0(self.first(x)))


class Modules(Cases):
    def test_open_sizes(self):
        model = Perceptron().eval()
        fast = lathe.torch.compile(model, (torch.randn(1, 4),), dynamic={'x': {0: (1, 3, 9)}})
        for rows in (1, 2, 9):
            x = torch.randn(rows, 4)
            self.assert_same(fast(x), model(x))
        with self.assertRaisesRegex(lathe.Error, 'LATHE-5003.*1 to 9'):
            fast(torch.randn(10, 4))
        self.assert_same(fast(x), model(x))
        self.assertEqual(self.engines(), 1)

    def test_open_sizes_that_take_too_long(self):
        model, x = Perceptron().eval(), torch.randn(5, 4)
        sizes = {'x': {0: (1, 5, 8)}}
        with endless_with_open_sizes():
            with self.warned(1):
                fast = lathe.torch.compile(model, (x,), dynamic=sizes, threads=1, open_seconds=0.5)
            with self.assertRaisesRegex(lathe.Error, 'open_seconds'):
                lathe.torch.compile(model, (x,), dynamic=sizes, threads=1, open_seconds=0.5, strict=True)
        self.assert_same(fast(x), model(x))
        with self.assertRaisesRegex(lathe.Error, 'LATHE-5002'):
            fast(x[:3])

    def test_a_length_that_becomes_a_number(self):
        model = torch.nn.LSTM(4, 8, batch_first=True).eval()
        with self.assertRaisesRegex(lathe.Error, r"torch.export cannot capture LSTM(.|\n)*input.*\[1\]"):
            lathe.torch.compile(model, (torch.randn(2, 5, 4),), dynamic={'input': {1: (2, 5, 8)}}, threads=1)

    def test_sizes_of_two_inputs_that_are_one(self):
        fast = lathe.torch.compile(torch.nn.Bilinear(4, 4, 3).eval(), (torch.randn(2, 4), torch.randn(2, 4)),
                                   dynamic={'input1': {0: (1, 2, 8)}, 'input2': {0: (1, 2, 8)}})
        self.assertEqual(fast(torch.randn(5, 4), torch.randn(5, 4)).shape, (5, 3))

    def test_arguments(self):
        model = Counting().eval()
        x, shift = torch.randn(5, 4), torch.randn(3)
        with self.warned(1):
            fast = lathe.torch.compile(model, (x,), {'power': 3, 'shift': shift})
        same = copy.deepcopy(model)
        for call in (lambda f: f(x, power=3, shift=shift), lambda f: f(shift=shift, power=3, x=x), lambda f: f(x, 3, shift=shift)):
            have, want = call(fast), call(same)
            self.assert_same(have['y'], want['y'])
            self.assertIs(have['x'], x)
        for call in (lambda: fast(x, power=2, shift=shift), lambda: fast(x), lambda: fast(x, power=3, shift=[shift]),
                     lambda: fast(x.double(), power=3, shift=shift), lambda: fast(x, x=x, power=3, shift=shift)):
            with self.assertRaises(TypeError):
                call()

    def test_tensors_by_name_in_any_order(self):
        class Sum(torch.nn.Module):
            def forward(self, a, b, *, c):
                return a - 2 * b + 3 * c
        model, (a, b, c) = Sum().eval(), torch.randn(3, 4)
        fast = lathe.torch.compile(model, (), {'c': c, 'b': b, 'a': a})
        for have in (fast(c=c, b=b, a=a), fast(a=a, b=b, c=c), fast(a, b, c=c), fast(a, c=c, b=b)):
            self.assert_same(have, model(a, b, c=c))

    def test_saved_and_loaded(self):
        model = Counting().eval()
        x = torch.randn(5, 4)
        with self.warned(1):
            fast = lathe.torch.compile(model, (x,), dynamic={'x': {0: (1, 5, 8)}})
        fast(x)
        file = io.BytesIO()
        torch.save(fast, file)
        file.seek(0)
        again = torch.load(file, weights_only=False)
        other = pickle.loads(pickle.dumps(fast))
        want = model(x)['y']  # which writes the buffer that the first one shares with the model
        for loaded in (again, other):
            self.assert_same(loaded(x)['y'], want)
            self.assert_same(loaded.count, torch.full((3,), 2.))
        self.assertEqual(again(x[:3])['y'].shape, (3, 3))

    def test_buffers_whose_names_meet(self):
        class Two(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a = torch.nn.Module()
                self.a.register_buffer('b', torch.zeros(4))
                self.register_buffer('a__b', torch.ones(4))
                self.register_buffer('options', torch.full((4,), 2.))

            def forward(self, x):
                self.a.b.add_(1)
                self.a__b.mul_(2)
                self.options.mul_(3)
                return x + self.a.b + self.a__b + self.options
        model, x = Two().eval(), torch.randn(3, 4)
        other = copy.deepcopy(model)
        with self.warned():
            fast = lathe.torch.compile(copy.deepcopy(model), (x,), refit=True, threads=1, budget=0)
        for _ in range(2):
            self.assert_same(fast(x), model(x))
        fast.refit(copy.deepcopy(other))
        self.assert_same(fast(x), other(x))
        self.assertEqual(len(fast.state_dict()), 3)

    def test_refit(self):
        model, x = Counting().eval(), torch.randn(5, 4)
        with self.warned(1):
            fast = lathe.torch.compile(model, (x,), refit=True)
        trained = Counting().eval()
        fast.refit(trained)
        want = copy.deepcopy(trained)
        self.assert_same(fast(x)['y'], want(x)['y'])
        loaded = pickle.loads(pickle.dumps(fast))
        self.assert_same(loaded(x)['y'], want(x)['y'])

    def test_refit_of_weights_that_were_equal(self):
        # Before a training biases and means are 0, weights and variances 1.
        model, x = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3)).eval(), torch.randn(5, 4)
        fast = lathe.torch.compile(model, (x,), refit=True, threads=1, budget=0)
        trained = copy.deepcopy(model)
        for value in (*trained.parameters(), trained[0].running_mean, trained[0].running_var):
            torch.nn.init.uniform_(value, 0.5, 1.5)
        fast.refit(trained)
        self.assert_same(fast(x), trained(x))

    def check_is_of_one(self, results, models, x):
        wanted = [model(x) for model in models]
        for have in results:
            self.assertTrue(any(torch.allclose(have, want, atol=1e-5) for want in wanted), 'weights of several models')

    def test_refit_by_several_threads(self):
        models, x = [Apart().eval() for _ in range(3)], torch.randn(5, 4)
        with self.warned(1):
            fast = lathe.torch.compile(models[0], (x,), refit=True, threads=1, budget=0)
        level = logging.getLogger('torch.onnx').level
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(fast.refit, models[1:] * 2))
        self.check_is_of_one([fast(x), copy.deepcopy(fast)(x)], models[1:], x)
        self.assertEqual(logging.getLogger('torch.onnx').level, level)

    def test_called_and_copied_while_it_is_refitted(self):
        models, x = [Perceptron().eval() for _ in range(3)], torch.randn(5, 4)
        fast = lathe.torch.compile(models[0], (x,), refit=True, threads=1, budget=0)
        is_done = threading.Event()

        def call():
            results = [copy.deepcopy(fast)(x)]
            while not is_done.wait(0.001):
                results.append(fast(x))
            return results
        with ThreadPoolExecutor(2) as threads:
            calls = [threads.submit(call) for _ in range(2)]
            try:
                for model in models[1:]:
                    fast.refit(model)
            finally:
                is_done.set()
        self.check_is_of_one([each for one in calls for each in one.result()], models, x)
        self.assert_same(fast(x), models[-1](x))

    def test_compiled_by_several_threads(self):
        models, x = [Perceptron().eval() for _ in range(3)], torch.randn(5, 4)
        level = logging.getLogger('torch.onnx').level
        with ThreadPoolExecutor(2) as threads:
            compiled = list(threads.map(lambda model: lathe.torch.compile(model, (x,), refit=True, threads=1, budget=0), models))
        for fast, model in zip(compiled, models):
            self.assert_same(fast(x), model(x))
        self.assertEqual(logging.getLogger('torch.onnx').level, level)

    def test_refit_that_takes_too_long(self):
        model, x = Perceptron().eval(), torch.randn(5, 4)
        fast = lathe.torch.compile(model, (x,), dynamic={'x': {0: (1, 5, 8)}}, refit=True, threads=1, budget=0, open_seconds=30)
        fast.options = dataclasses.replace(fast.options, open_seconds=0.5)
        with endless_with_open_sizes(), self.assertRaisesRegex(lathe.Error, 'open_seconds'):
            fast.refit(Perceptron().eval())
        self.assert_same(fast(x[:3]), model(x[:3]))

    def test_refit_of_another_model_leaves_it_as_it_is(self):
        model, x = Perceptron().eval(), torch.randn(5, 4)
        fast = lathe.torch.compile(model, (x,), refit=True)
        for other in (Perceptron(16).eval(), torch.nn.Linear(4, 3).eval(), Counting().eval()):
            with self.assertRaises(lathe.Error):
                fast.refit(other)
            self.assert_same(fast(x), model(x))
        with self.assertRaisesRegex(lathe.Error, 'refit=True'):
            lathe.torch.compile(model, (x,)).refit(model)

    def test_refusals(self):
        model, x = Perceptron(), torch.randn(5, 4)
        with self.assertRaisesRegex(lathe.Error, r'training mode.*eval\(\)'):
            lathe.torch.compile(model, (x,))
        model.eval()
        fast = lathe.torch.compile(model, (x,))
        with self.assertRaisesRegex(lathe.Error, 'for inference'):
            fast.train()
        with torch.enable_grad(), self.assertRaisesRegex(lathe.Error, 'wants gradients'):
            fast(x.clone().requires_grad_())
        for dynamic in ({'z': {0: (1, 2, 3)}}, {'x': {2: (1, 2, 3)}}, {'x': {0: (3, 2, 1)}}, {'x': {1: (1, 4, 8)}}):
            with self.subTest(dynamic), self.assertRaises(lathe.Error):
                lathe.torch.compile(model, (x,), dynamic=dynamic)
        with self.assertRaisesRegex(lathe.Error, r'axis 0 of x, of shape \(0, 4\)'):
            lathe.torch.compile(model, (x[:0],), dynamic={'x': {0: (1, 2, 3)}})
        with self.assertRaisesRegex(lathe.Error, 'bessel_j0'):
            lathe.torch.compile(Counting().eval(), (x,), strict=True)

    def test_outputs_whose_sizes_a_run_tells(self):
        class Found(torch.nn.Module):
            def forward(self, x):
                return x.nonzero(), x.sum()
        model = Found().eval()
        with self.warned():
            fast = lathe.torch.compile(model, (torch.randn(3, 4),))
        for x in (torch.zeros(3, 4), torch.eye(3, 4), torch.ones(3, 4)):
            self.assert_same(fast(x), model(x))

    def test_a_plan_for_other_sizes_that_cannot_be_loaded(self):
        model, x = Perceptron().eval(), torch.randn(5, 4)
        part, = lathe.torch.compile(model, (x,), threads=1, budget=0)._parts()
        plan, part.rebuild = part.plan, lambda sizes: b'no plan'
        with self.assertRaisesRegex(lathe.Error, 'LATHE-'):
            part(x[:3])
        self.assertEqual(part.plan, plan)
        self.assert_same(part(x)[0], model(x))

    def test_two_are_independent(self):
        model, x = Perceptron().eval(), torch.randn(5, 4)
        first = lathe.torch.compile(model, (x,))
        kept = first(x)
        second = copy.deepcopy(first)
        self.assert_same(second(-x), model(-x))
        self.assert_same(kept, model(x))


if __name__ == '__main__':
    unittest.main()
