# SPDX-License-Identifier: Apache-2.0
"""What a compiled model is, beside what it computes: weights without a count of writes, constants, threads, copies and files."""
import concurrent.futures
import copy
import io
import pickle
import threading
import unittest

from pytorch import Cases, Perceptron, lathe, torch

QUICK = {'threads': 1, 'budget': 0}


def compiled(model, **options):
    return torch.compile(model, backend='lathe', options=QUICK | options)


class Inference(Cases):
    def test_weights_that_were_made_in_inference_mode(self):
        with torch.inference_mode():
            model, x = Perceptron().eval(), torch.randn(5, 4)
            fast = compiled(model)
            with self.warned(1) as texts:
                self.assert_same(fast(x), model(x))
                model.first.weight.mul_(-1)
                model.load_state_dict(Perceptron().state_dict())
                self.assert_same(fast(x), model(x))
                self.assertEqual(self.engines(), 1)
        self.assertIn('4 weights were made in torch.inference_mode()', texts[0])
        self.assert_same(fast(x), model(x))

    def test_weights_that_are_changed_in_inference_mode(self):
        model, x = Perceptron().eval(), torch.randn(5, 4)
        # Without guards nobody but the backend looks whether a weight is still of the kind that it was.
        fast = compiled(model, guard_filter_fn=torch.compiler.skip_guard_on_all_nn_modules_unsafe)
        with self.warned(2) as texts, torch.inference_mode():
            fast(x)
            model.first.weight.mul_(-1)
            self.assert_same(fast(x), model(x))
            for _ in range(2):
                model.first.weight.data = torch.randn(8, 4)
                self.assert_same(fast(x), model(x))
        self.assertIn('changed in place', texts[0])
        self.assertIn('1 weights were made in torch.inference_mode()', texts[1])

    def test_a_module_of_the_same_code_that_was_made_in_inference_mode(self):
        with torch.inference_mode():
            other = Perceptron().eval()
        model, x = Perceptron().eval(), torch.randn(5, 4)

        @torch.compile(backend='lathe', options=QUICK)
        def function(layer, x):
            return layer(x)
        for layer in (model, other, model, other):
            with torch.inference_mode():
                self.assert_same(function(layer, x), layer(x))
                layer.first.weight.neg_()
                self.assert_same(function(layer, x), layer(x))


class Constants(Cases):
    def test_equal_ones_that_are_not_the_same(self):
        def function(x, number):
            return x * number, x // 2 if isinstance(number, bool) else x + 1, torch.full_like(x, 1) / number
        # Dynamo of PyTorch 2.11 itself takes -0.0 for 0.0, whichever backend it calls.
        zeros = (0.0, -0.0) if torch.__version__ >= (2, 12) else (0.0,)
        for x, numbers in ((torch.arange(4), (2, 2.0, 1, True, 1.0)), (torch.ones(3), (*zeros, float('inf'), float('nan')))):
            torch._dynamo.reset()
            fast = compiled(function)
            for number in numbers:
                self.assert_same(fast(x, number), function(x, number), equal_nan=True)

    def test_of_modules(self):
        class Scaled(torch.nn.Module):
            def forward(self, x, number, name='a'):
                return x * number
        x = torch.arange(4)
        fast = lathe.torch.compile(Scaled().eval(), (x, 1), **QUICK)
        self.assert_same(fast(x, 1), x)
        for number in (1.0, True, 2, None):
            with self.subTest(number), self.assertRaisesRegex(TypeError, f'1 became a constant .* got {number!r} for it'):
                fast(x, number)
        zero = lathe.torch.compile(Scaled().eval(), (torch.ones(2), 0.0), **QUICK)
        with self.assertRaisesRegex(TypeError, 'got -0.0'):
            zero(torch.ones(2), -0.0)
        undefined = lathe.torch.compile(Scaled().eval(), (torch.ones(2), float('nan')), **QUICK)
        self.assertTrue(undefined(torch.ones(2), float('nan')).isnan().all())


class Threads(Cases):
    COUNT, CALLS = 8, 12

    def check(self, call, model, sizes):
        """Calls it in many threads at once, each with inputs of its own."""
        start = threading.Barrier(self.COUNT)
        call(torch.randn(5, 4))  # while PyTorch traces a program, no other thread may call modules

        def run(number):
            generator = torch.Generator().manual_seed(number)
            with torch.no_grad():
                start.wait()
                for step in range(self.CALLS):
                    x = torch.randn(sizes[(number + step) % len(sizes)], 4, generator=generator)
                    yield call(x), model(x)
        with concurrent.futures.ThreadPoolExecutor(self.COUNT) as pool:
            for pairs in pool.map(lambda number: list(run(number)), range(self.COUNT)):
                for have, want in pairs:
                    self.assert_same(have, want)

    def test_modules(self):
        model = Perceptron().eval()
        fast = lathe.torch.compile(model, (torch.randn(5, 4),), dynamic={'x': {0: (1, 5, 50)}}, **QUICK)
        self.check(fast, model, (5, 1, 50))

    def test_functions(self):
        model = Perceptron().eval()
        self.check(compiled(model), model, (5,))

    def test_functions_of_open_sizes(self):
        model = Perceptron().eval()
        fast = torch.compile(model, backend='lathe', dynamic=True, options=QUICK)
        self.check(fast, model, (5, 3, 70, 400))

    def test_weights_that_have_changed(self):
        model = Perceptron().eval()
        fast = compiled(model)
        for _ in range(2):
            self.check(fast, model, (5,))
            model.first.weight.mul_(-1)


class Norm(torch.nn.Module):
    """Has a buffer that it reads and one that it writes."""

    def __init__(self):
        super().__init__()
        self.norm, self.inner = torch.nn.BatchNorm1d(4), Perceptron()
        for value in (self.norm.weight, self.norm.bias, self.norm.running_mean, self.norm.running_var):
            torch.nn.init.uniform_(value, 0.5, 1.5)
        self.register_buffer('count', torch.zeros(3))

    def forward(self, x):
        self.count.add_(1)
        return self.inner(self.norm(x)) * self.count


class Copies(Cases):
    def other(self):
        torch.manual_seed(5)
        other = Norm().eval()
        other.norm.running_mean.add_(2)
        other.count.add_(10)
        return other

    def test_state_of_functions(self):
        model, x = Norm().eval(), torch.randn(5, 4)
        for assign in (False, True):
            torch._dynamo.reset()
            fast = compiled(model)
            fast(x)
            self.assertEqual(list(fast.state_dict()), [f'_orig_mod.{name}' for name in model.state_dict()])
            for keys in ('', '_orig_mod.'):
                state = {f'{keys}{name}': value.clone() for name, value in self.other().state_dict().items()}
                want = self.other()
                (fast if keys else model).load_state_dict(state, assign=assign)
                for _ in range(2):
                    self.assert_same(fast(x), want(x))
                self.assert_same(dict(model.state_dict()), dict(want.state_dict()))

    def test_copies_and_files_of_functions(self):
        model, x = Norm().eval(), torch.randn(5, 4)
        fast = compiled(model)
        fast(x)
        file = io.BytesIO()
        torch.save(fast, file)
        file.seek(0)
        for again in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast)), torch.load(file, weights_only=False)):
            want = copy.deepcopy(model)
            again.inner.first.weight.neg_()
            want.inner.first.weight.neg_()
            for _ in range(2):
                self.assert_same(again(x), want(x))
            self.assert_same(fast._orig_mod.count, model.count)
        self.assert_same(fast(x), copy.deepcopy(model)(x) * (model.count / (model.count + 1)))

    def test_state_of_modules(self):
        model, x = Norm().eval(), torch.randn(5, 4)
        fast = lathe.torch.compile(model, (x,), **QUICK)
        self.assertEqual(list(fast.state_dict()), ['count'])
        saved = {name: value.clone() for name, value in fast.state_dict().items()}
        first = fast(x)
        fast(x)
        for assign in (False, True):
            fast.load_state_dict(saved, assign=assign)
            self.assert_same(fast(x), first)
            saved = {'count': torch.zeros(3)}
        with self.assertRaisesRegex(RuntimeError, 'Unexpected key.*inner.first.weight'):
            fast.load_state_dict(model.state_dict())

    def test_copies_of_modules(self):
        model, x = Norm().eval(), torch.randn(5, 4)
        fast = lathe.torch.compile(model, (x,), dynamic={'x': {0: (1, 5, 8)}}, refit=True, **QUICK)
        for again in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
            want = copy.deepcopy(model)
            for rows in (5, 8):
                self.assert_same(again(x[:1].expand(rows, 4)), want(x[:1].expand(rows, 4)))
            self.assert_same(model.count, torch.zeros(3))
            again.refit(self.other())
            want = self.other()
            self.assert_same(again(x), want(x))
            self.assert_same(copy.deepcopy(again)(x), want(x))
        self.assert_same(fast(x), model(x) / 2)  # the buffer is the model's: two have counted


if __name__ == '__main__':
    unittest.main()
