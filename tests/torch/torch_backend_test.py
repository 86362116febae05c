# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend='lathe') against PyTorch."""
import copy
import pathlib
import re
import unittest

from pytorch import Cases, Perceptron, endless_with_open_sizes, lathe, torch


def compiled(model, **options):
    return torch.compile(model, backend='lathe', options=options or None)


class Inputs(Cases):
    def test_sizes_become_open_when_they_change(self):
        model = Perceptron().eval()
        fast = compiled(model)
        with self.warned():
            for rows in (5, 6, 7, 40, 400):
                x = torch.randn(rows, 4)
                self.assert_same(fast(x), model(x))
        # One for the first size, one for open sizes, and further ones when these became larger than it was built for.
        self.assertLess(self.engines(), 5)

    def test_lengths_that_become_numbers(self):
        model = torch.nn.LSTM(4, 8, batch_first=True).eval()
        fast = torch.compile(model, backend='lathe', dynamic=True, options={'threads': 1})
        for length in (5, 7, 3, 7, 5):
            x = torch.randn(2, length, 4)
            self.assert_same(fast(x), model(x), rtol=1e-4, atol=1e-5)

    def test_open_sizes_that_take_too_long(self):
        model = Perceptron().eval()
        fast = torch.compile(model, backend='lathe', dynamic=True, options={'threads': 1, 'open_seconds': 0.5})
        with endless_with_open_sizes(), self.warned(1) as texts:
            for size in (5, 7, 5):
                x = torch.randn(size, 4)
                self.assert_same(fast(x), model(x))
        self.assertIn('in 0.5 seconds', texts[0])
        strict = torch.compile(model, backend='lathe', dynamic=True, options={'threads': 1, 'open_seconds': 0.5, 'strict': True})
        with endless_with_open_sizes():
            for _ in range(2):
                with self.assertRaisesRegex(Exception, 'in 0.5 seconds'):
                    strict(torch.randn(5, 4))

    def test_strides(self):
        model = Perceptron().eval()
        fast = compiled(model)
        for x in (torch.randn(4, 6).T, torch.randn(6, 8)[:, ::2], torch.randn(1, 4).expand(6, 4), torch.randn(7, 4)[1:]):
            self.assert_same(fast(x), model(x))

    def test_types(self):
        def function(x, i, b):
            return x * 2, i + 1, ~b, torch.where(b, x, -x), i.to(x.dtype) + x
        fast = compiled(function)
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
            with self.subTest(dtype), self.warned():
                given = torch.randn(3, 4).to(dtype), torch.randint(-5, 5, (3, 4)), torch.rand(3, 4) > 0.5
                self.assert_same(fast(*given), function(*given))

    def test_numbers_beside_tensors(self):
        def function(x, number, scale, flag):
            return x.reshape(number, -1) * scale if flag else x + number
        fast = compiled(function)
        x = torch.randn(4, 6)
        for given in ((2, 0.5, True), (4, 0.5, True), (8, 1.5, True), (3, 1.5, True), (3, 2.0, False)):
            self.assert_same(fast(x, *given), function(x, *given))

    def test_empty_and_single(self):
        fast = compiled(lambda x, y: (x + 1, y * 2))
        for shape in ((0, 4), (), (1,)):
            x, y = torch.randn(shape), torch.randn(())
            self.assert_same(fast(x, y), (x + 1, y * 2))

    def test_nothing_is_copied(self):
        # The engine reads and writes the tensors' memory.
        seen = []
        original = lathe.torch._part.Part._run
        with unittest.mock.patch.object(lathe.torch._part.Part, '_run', lambda part, inputs: seen.append(
                (part, [each.data_ptr() for each in inputs], outputs := original(part, inputs))) or outputs):
            x = torch.randn(5, 4)
            y = compiled(Perceptron().eval())(x)
        (part, inputs, outputs), = seen
        self.assertEqual(inputs, [x.data_ptr()])
        self.assertEqual(part._context.get_tensor_address(part.inputs[0][0]), x.data_ptr())
        self.assertEqual(part._context.get_tensor_address(part.outputs[0][0]), y.data_ptr())

    def test_memory_from_call_to_call(self):
        model, held = Perceptron().eval(), torch.randn(4, 5, 4)
        fast = compiled(model)
        kept = [fast(x) for x in held]  # outputs that are kept have memory of their own
        for _ in range(3):
            for x, y in zip(held, kept):
                self.assert_same(fast(x), y)
        x, y = torch.randn(5, 4), torch.empty(0, 4)
        self.assert_same((fast(x), fast(y), fast(x)), (model(x), model(y), model(x)))


class Structure(Cases):
    def test_tuples_and_dicts(self):
        def function(pair, named):
            a, (b, c) = pair
            return {'sum': a + b, 'rest': [c * named['k'], (a - b, None, 7)]}
        a, b, c, k = torch.randn(4, 3)
        given = (a, (b, c)), {'k': k}
        self.assert_same(compiled(function)(*given)['rest'][1][0], a - b)
        have, want = compiled(function)(*given), function(*given)
        self.assertEqual(have['rest'][1][1:], want['rest'][1][1:])
        self.assert_same((have['sum'], have['rest'][0]), (want['sum'], want['rest'][0]))

    def test_outputs_share_memory_as_in_pytorch(self):
        def function(x):
            y = x * 2
            return x.view(-1), y, y.t(), x
        x = torch.randn(3, 4)
        view, y, transposed, same = compiled(function)(x)
        self.assertIs(same, x)
        view[0] = 100
        self.assertEqual(x[0, 0], 100)
        y[1, 2] = 200
        self.assertEqual(transposed[2, 1], 200)

    def test_inputs_that_are_written(self):
        def function(x, y):
            x.add_(y)
            y[0].mul_(3)
            return x.view(-1), x * y
        x, y = torch.randn(3, 4), torch.randn(3, 4)
        x2, y2 = x.clone(), y.clone()
        with self.warned():
            have, want = compiled(function)(x, y), function(x2, y2)
        self.assert_same((have, x, y), (want, x2, y2))
        self.assertEqual(have[0].data_ptr(), x.data_ptr())

    def test_written_inputs_of_one_memory(self):
        def function(x, y):
            x.add_(1)
            return x + y
        fast = compiled(function)
        fast(torch.randn(4), torch.randn(4))
        memory, other = torch.arange(6.), torch.arange(6.)
        self.assert_same(fast(memory[:4], memory[1:5]), function(other[:4], other[1:5]))
        self.assert_same(memory, other)

    def test_buffers_that_are_written(self):
        class Counting(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer('count', torch.zeros(()))
                self.norm = torch.nn.BatchNorm1d(4)

            def forward(self, x):
                self.count.add_(1)
                return self.norm(x) * self.count
        model = Counting()  # in training mode: the norm writes its statistics
        same = copy.deepcopy(model)
        fast = compiled(model)
        for _ in range(3):
            x = torch.randn(8, 4)
            self.assert_same(fast(x), same(x))
        self.assert_same(dict(model.named_buffers()), dict(same.named_buffers()))


class Weights(Cases):
    def test_changed_in_place(self):
        model = Perceptron().eval()
        fast, x = compiled(model), torch.randn(5, 4)
        fast(x)
        with self.warned(1) as texts:
            for _ in range(2):
                model.first.weight.mul_(-1)
                self.assert_same(fast(x), model(x))
        self.assertIn('changed in place', texts[0])

    def test_written_after_the_first_look(self):
        # A graph that is run twice for a new weight gives the new answer, and with guards left out it is looked at all the same.
        model, x = Perceptron().eval(), torch.randn(5, 4)
        fast = torch.compile(model, backend='lathe', options={
            'threads': 1, 'guard_filter_fn': torch.compiler.skip_guard_on_all_nn_modules_unsafe})
        fast(x)
        with self.warned(1):
            model.load_state_dict(Perceptron().state_dict())
            self.assert_same(fast(x), model(x))

    def test_given_other_memory(self):
        model, x = Perceptron().eval(), torch.randn(5, 4)
        fast = compiled(model)
        fast(x)
        with self.warned(1):
            for _ in range(2):
                # The second of these could lie where the first weight lay, if nobody held that memory.
                model.first.weight.data = torch.zeros(8, 4)
                model.first.weight.data = torch.randn(8, 4)
                self.assert_same(fast(x), model(x))

    def test_changed_together_with_sizes(self):
        # What runs ahead is launched with the old weights; it is not built anew of them for the sizes.
        model = Perceptron().eval()
        fast = torch.compile(model, backend='lathe', dynamic=True, options={'threads': 1})
        ahead = property(lambda _: True, lambda *_: None)  # as on a GPU
        with unittest.mock.patch.object(lathe.torch._backend._Engines, 'runs_ahead', ahead, create=True):
            fast(torch.randn(5, 4))
            built = self.engines()
            with self.warned(1):
                model.first.weight.mul_(-1)
                x = torch.randn(500, 4)
                self.assert_same(fast(x), model(x))
        self.assertEqual(self.engines(), built + 1)

    def test_modules_that_share_their_code(self):
        layers = [Perceptron().eval() for _ in range(3)]
        x = torch.randn(5, 4)
        for layer in layers:
            layer.compile(backend='lathe')
        for _ in range(2):
            for layer in layers:
                self.assert_same(layer(x), layer.forward(x))

    def test_a_buffer_that_the_program_writes_between_runs(self):
        class Shifted(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer('shift', torch.zeros(4))

            def forward(self, x):
                return x + self.shift
        model, x = Shifted(), torch.randn(4)
        fast = compiled(model)
        fast(x)
        for _ in range(2):
            model.shift.add_(1)
            self.assert_same(fast(x), x + model.shift)
        built = self.engines()
        model.shift.add_(1)
        self.assert_same(fast(x), x + model.shift)
        self.assertEqual(self.engines(), built)  # it is an input by now

    def test_second_compilation_builds_nothing(self):
        model, x = Perceptron().eval(), torch.randn(5, 4)
        compiled(model)(x)
        self.assertEqual(self.engines(), 1)
        with unittest.mock.patch.object(lathe._tensorrt, '_artifact_plan', wraps=lathe._tensorrt._artifact_plan) as asked:
            torch._dynamo.reset()
            compiled(copy.deepcopy(model))(x)
        self.assertEqual((asked.call_count, self.engines()), (1, 1))
        compiled(model, precision='bf16')(x)
        self.assertEqual(self.engines(), 2)


class Staying(Cases):
    def test_an_operator_without_a_rule(self):
        model = Perceptron().eval()

        def function(x):
            return model(torch.special.bessel_j0(model(x) @ torch.ones(3, 4)))
        x = torch.randn(5, 4)
        with self.warned(1) as texts:
            y = compiled(function)(x)
        self.assert_same(y, function(x))
        for word in ('bessel_j0', 'torch_backend_test.py', 'no rule'):
            self.assertIn(word, texts[0])
        self.assertEqual(self.engines(), 2)  # before and behind it

    def test_strict(self):
        with self.assertRaisesRegex(Exception, 'bessel_j0'):
            compiled(lambda x: torch.special.bessel_j0(x) + 1, strict=True)(torch.randn(3))

    def test_random_numbers_are_those_of_pytorch(self):
        def function(x):
            return torch.nn.functional.dropout(x @ x, 0.5) + 1
        fast, x = compiled(function), torch.randn(8, 8)
        with self.warned(1) as texts:
            torch.manual_seed(7)
            have = fast(x)
        torch.manual_seed(7)
        self.assert_same(have, function(x))
        self.assertIn('generator', texts[0])

    def test_a_graph_of_nothing_that_an_engine_can_compute(self):
        def function(x):
            return torch.special.bessel_j0(x)
        with self.warned(1):
            self.assert_same(compiled(function)(x := torch.randn(3)), function(x))

    def test_training_is_refused(self):
        model = Perceptron()
        with torch.enable_grad(), self.assertRaisesRegex(Exception, 'would need gradients.*no_grad'):
            compiled(model)(torch.randn(2, 4))
        with torch.inference_mode():
            x = torch.randn(2, 4)
            self.assert_same(compiled(model)(x), model(x))

    def test_options(self):
        number, truth = 'seconds', 'True or False'
        for name, values, wanted in (
                ('precision', ('f8', None, torch.float16), 'one of fp32, fp16, bf16'),
                ('threads', (-1, 1.0, True, '2', None), 'a whole number'),
                ('device', ('tpu', '', 0, torch.device('cpu')), 'None or what lathe.build'), ('strict', (1, 'no', None), truth),
                ('refit', (1, None), truth), ('budget', (-1, float('nan'), float('inf'), '1', True), f'None or {number}'),
                ('open_seconds', (0, -1, float('nan'), None, '1', True), number), ('cache', (0, False), 'None or the path')):
            for value in values:
                with self.subTest(name, value=value), self.assertRaisesRegex(
                        lathe.Error, re.escape(f'{name} is {wanted}') + '.*' + re.escape(f', got {value!r}')):
                    lathe.torch.Options.of({name: value})
        with self.assertRaisesRegex(lathe.Error, 'no such option: pace, speed; there are precision, threads'):
            lathe.torch.Options.of({'speed': 1, 'pace': 2, 'threads': 1})
        for options, words in (({'speed': 1}, 'no such option: speed'),
                               ({'device': 'cuda'}, "device is one for tensors on cpu, got 'cuda'"),
                               ({'refit': True}, 'refit is False in torch.compile.*, got True')):
            with self.subTest(options), self.assertRaisesRegex(Exception, words):
                compiled(lambda x: x + 1, **options)(torch.randn(2))
        with self.assertRaisesRegex(lathe.Error, "device is one for tensors on cpu, got 'sm_90'"):
            lathe.torch.compile(torch.nn.ReLU().eval(), (torch.randn(2),), device='sm_90')
        kept = pathlib.Path(self.cache, 'other')
        compiled(lambda x: x + 1, cache=kept, budget=0, open_seconds=float('inf'), device='cpu')(torch.randn(2))
        self.assertEqual(len(list(kept.rglob('*.engine'))), 1)
        with self.assertRaisesRegex(Exception, 'says nothing to this backend'):
            torch.compile(lambda x: x + 1, backend='lathe', mode='max-autotune')(torch.randn(2))

    def test_the_name_is_known(self):
        self.assertIn('lathe', torch._dynamo.list_backends())


if __name__ == '__main__':
    unittest.main()
