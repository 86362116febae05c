# SPDX-License-Identifier: Apache-2.0
"""Programs that write inputs, buffers and weights, in every order of reads and writes, against PyTorch."""
import copy
import random
import unittest

from pytorch import Cases, lathe, torch

QUICK = {'threads': 1, 'budget': 0}


class Function(torch.nn.Module):
    """A function of tensors as a module; its buffers may be written."""

    def __init__(self, function, **buffers):
        super().__init__()
        self.function = function
        for name, value in buffers.items():
            self.register_buffer(name, value)

    def forward(self, *args):
        return self.function(*args, *(value for _, value in sorted(self.named_buffers())))


def swap(x, y):
    kept = x.clone()
    x.copy_(y)
    y.copy_(kept)
    return x + y


def rotate(x, y, z):
    first = x.clone()
    x.copy_(y)
    y.copy_(z)
    z.copy_(first)
    return x * 2


def kept_before(x, y):
    before = x.clone()
    x.add_(y)
    return before, before * 2, x - before


def read_late(x, y):
    # The write needs less than what reads the former values, of which a part stays in PyTorch.
    late = torch.special.bessel_j0(x @ y) @ x
    x.mul_(2)
    return late


def copied(x, y):
    y.copy_(x)
    return x.view(-1), y.view(-1)


def one_value_twice(x, y):
    value = x * y
    x.copy_(value)
    y.copy_(value)
    return value


def through_a_view(x, y):
    x[1].copy_(y[0])
    y.t().mul_(x)
    return x.t() + y


def copies_of_weights(x, weight):
    # What is copied is smaller, or is itself a weight, and the copy is written.
    row, whole = torch.empty_like(x), torch.empty_like(x)
    row.copy_(weight[0])
    whole.copy_(weight).mul_(x)
    return row, whole, torch.zeros(4, 4, dtype=torch.int32).copy_(weight * 10), torch.empty_like(weight).copy_(weight)


class Orders(Cases):
    def check(self, function, *given, buffers=(), told=0):
        for way in ('backend', 'module'):
            torch._dynamo.reset()
            with self.subTest(function.__name__, way=way):
                model = Function(function, **{f'b{index}': value.clone() for index, value in enumerate(buffers)}).eval()
                same = copy.deepcopy(model)
                examples = [each.clone() for each in given]
                with self.warned(told):
                    fast = torch.compile(model, backend='lathe', options=QUICK) if way == 'backend' else \
                        lathe.torch.compile(model, tuple(examples), **QUICK)
                    for _ in range(2):
                        have_args, want_args = ([each.clone() for each in given] for _ in range(2))
                        have, want = fast(*have_args), same(*want_args)
                        self.assert_same(have, want)
                        self.assert_same(have_args, want_args)
                        self.assert_same(dict(model.named_buffers()), dict(same.named_buffers()))
                        self.assertEqual(self.shared(have, have_args), self.shared(want, want_args))

    @staticmethod
    def shared(outputs, args):
        """Which outputs are of one memory with which arguments and outputs."""
        outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
        places = [each.untyped_storage().data_ptr() for each in [*args, *outputs]]
        return [places.index(place) for place in places]

    def test_inputs(self):
        a, b, c = torch.randn(3, 4, 4)
        for function in (swap, kept_before, copied, one_value_twice, through_a_view):
            self.check(function, a, b)
        self.check(rotate, a, b, c)

    def test_buffers(self):
        a, b, c = torch.randn(3, 4, 4)
        for function in (swap, one_value_twice):
            self.check(function, buffers=(a, b))
            self.check(function, a, buffers=(b,))
        self.check(rotate, c, buffers=(a, b))

    def test_copies(self):
        self.check(copies_of_weights, torch.randn(4, 4), buffers=(torch.randn(4, 4),))

    def test_a_read_that_waits_for_pytorch(self):
        self.check(read_late, *torch.randn(2, 4, 4), told=1)

    def test_random_orders(self):
        for seed in range(6):
            steps = random.Random(seed)
            chosen = [(steps.choice(('add', 'copy', 'row', 'keep', 'mix')), steps.randrange(3), steps.randrange(3)) for _ in range(6)]

            def function(*tensors, chosen=chosen):
                kept = []
                for kind, to, source in chosen:
                    if kind == 'add':
                        tensors[to].add_(tensors[source])
                    elif kind == 'copy':
                        tensors[to].copy_(tensors[source])
                    elif kind == 'row':
                        tensors[to][1].mul_(tensors[source][0])
                    elif kind == 'keep':
                        kept.append(tensors[source].clone())
                    else:
                        tensors[to].sub_(torch.tanh(tensors[source]) * 0.5)
                return (tensors[0] + tensors[1] - tensors[2], *kept)
            function.__name__ = f'random_{seed}'
            self.check(function, *torch.randn(2, 4, 4), buffers=(torch.randn(4, 4),))

    def test_weights_that_are_written(self):
        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(4), requires_grad=False)

            def forward(self, x):
                y = x * self.weight
                self.weight.mul_(-2)
                return y + self.weight, self.weight.view(2, 2)
        model = Scaled().eval()
        same = copy.deepcopy(model)
        fast, x = torch.compile(model, backend='lathe', options=QUICK), torch.randn(3, 4)
        for _ in range(3):
            self.assert_same(fast(x), same(x))
            self.assert_same(model.weight, same.weight)

    def test_an_input_of_a_weights_memory(self):
        class Moved(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(4), requires_grad=False)

            def forward(self, x):
                x.add_(1)
                return x * self.weight
        model = Moved().eval()
        same = copy.deepcopy(model)
        fast = torch.compile(model, backend='lathe', options=QUICK)
        fast(x := torch.randn(4))
        same(x.clone())
        for _ in range(2):
            self.assert_same(fast(model.weight.view(4)), same(same.weight.view(4)))
            self.assert_same(model.weight, same.weight)


if __name__ == '__main__':
    unittest.main()
