# SPDX-License-Identifier: Apache-2.0
"""Tensors of other kinds, and how long memory is held: each is right here or left to PyTorch, with a warning that says why."""
import contextlib
import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import unittest
import unittest.mock
import weakref

from pytorch import Cases, Perceptron, lathe, torch

from lathe.torch import _lower, _part
from lathe.torch._options import Options

QUICK = {'threads': 1, 'budget': 0}


def compiled(model, **options):
    return torch.compile(model, backend='lathe', options=QUICK | options)


class Kinds(Cases):
    def check(self, function, *given, told=0, ways=('backend', 'module')):
        for way in ways:
            torch._dynamo.reset()
            with self.subTest(way=way), contextlib.nullcontext([]) if told is None else self.warned(told) as texts:
                model = function if isinstance(function, torch.nn.Module) else Calling(function)
                fast = compiled(model) if way == 'backend' else lathe.torch.compile(model.eval(), given, **QUICK)
                have, want = fast(*given), model(*given)
                if given[0].is_meta:
                    self.assertEqual((have.shape, have.device), (want.shape, want.device))
                else:
                    self.assert_same(have, want)
                    self.assertEqual(have.dtype, want.dtype)
            self.texts = texts

    def test_meta(self):
        self.check(lambda x: x @ x + 1, torch.empty(3, 3, device='meta'), told=1)
        self.assertIn('these are on meta', self.texts[0])
        self.check(lambda x: torch.ones(4, device='meta') + x.shape[0], torch.empty(3, 3, device='meta'), told=1)

    def test_no_tensors(self):
        self.check(lambda x: torch.ones(4) + x.shape[0], torch.randn(3, 3))

    def test_complex(self):
        z = torch.randn(3, 4, dtype=torch.complex64)
        self.check(lambda z: z * 2 + 1, z, told=1)
        self.assertIn('complex64', self.texts[0])
        self.check(lambda z: torch.view_as_real(z) * 2, z, told=1)
        self.check(lambda x: torch.fft.rfft(x).abs() + x[..., :3], torch.randn(3, 4), told=None)

    def test_bits_that_say_what_memory_does_not(self):
        x = torch.randn(3, 4)
        self.check(lambda x: x * 2 + 1, torch._neg_view(x))
        z = torch.randn(3, 4, dtype=torch.complex64)
        self.check(lambda x: x * 2 + 1, z.conj().imag)
        self.check(lambda z: z * 2 + 1, z.conj(), told=1)
        fast = compiled(lambda x: x * 2 + 1)
        fast(x)
        self.assert_same(fast(torch._neg_view(x)), -x * 2 + 1)

    def test_sparse(self):
        with self.subTest('argument'):
            x = torch.eye(4)
            fast = lathe.torch.compile(Calling(lambda x: x @ x + 1).eval(), (x,), **QUICK)
            with self.assertRaisesRegex(TypeError, 'sparse'):
                fast(x.to_sparse())

    def test_overlapping(self):
        self.check(lambda x, y: x @ y + 1, torch.randn(1, 4).expand(3, 4), torch.randn(4).as_strided((4, 4), (0, 1)))
        self.check(lambda x: x * 2, torch.randn(9).as_strided((4, 3), (2, 1)))

    def test_empty(self):
        self.check(lambda x, y: (x @ y).sum() + y.sum(), torch.randn(3, 0), torch.randn(0, 4))
        for way in ('backend', 'module'):
            model = Emptying().eval()
            x, y = torch.empty(0, 4), torch.empty(0, 4)
            fast = compiled(model) if way == 'backend' else lathe.torch.compile(model, (x, y), **QUICK)
            self.assertEqual(fast(x, y).shape, (0, 4))

    def test_float64(self):
        model = Perceptron().eval().double()
        self.check(model, torch.randn(5, 4, dtype=torch.float64))

    def test_gradients(self):
        model = Perceptron().eval()
        fast, x = compiled(model), torch.randn(5, 4, requires_grad=True)
        y = fast(x)  # in no_grad()
        self.assert_same(y, model(x))
        self.assertFalse(y.requires_grad)
        with torch.enable_grad():
            with self.assertRaisesRegex(Exception, 'would need gradients'):
                fast(x)
            detached = compiled(lambda x: x.detach() * 2)(x)
        self.assertFalse(detached.requires_grad)
        self.assert_same(detached, x.detach() * 2)
        self.assert_same(fast(x), model(x))


class Calling(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Emptying(torch.nn.Module):
    def forward(self, x, y):
        x.add_(1)
        return x + y


class Held(Cases):
    def test_inputs_and_outputs_go_with_the_call(self):
        model = Perceptron().eval()
        for open_sizes in (False, True):
            torch._dynamo.reset()
            backend = torch.compile(model, backend='lathe', dynamic=open_sizes, options=QUICK)
            given = torch.randn(5, 4)
            module = lathe.torch.compile(model, (given,), dynamic={'x': {0: (1, 5, 50)}} if open_sizes else None, **QUICK)
            compiled_with = weakref.ref(given)
            for name, fast in (('backend', backend), ('module', module)):
                with self.subTest(name, open_sizes=open_sizes):
                    given = torch.randn(5, 8)[:, ::2] if name == 'backend' else torch.randn(5, 4)
                    result = fast(given)
                    held = [weakref.ref(given), weakref.ref(result), compiled_with]
                    del given, result
                    gc.collect()
                    self.assertEqual([each() is None for each in held], [True] * 3)

    def test_engines_go_with_their_weights(self):
        for dynamic in (False, True):
            torch._dynamo.reset()
            parts, original = [], _part.Part.__init__

            def noted(part, *args, parts=parts, original=original, **options):
                original(part, *args, **options)
                parts.append(weakref.ref(part))
            with self.subTest(dynamic=dynamic), unittest.mock.patch.object(_part.Part, '__init__', noted):
                x, layers = torch.randn(5, 4), [Perceptron().eval() for _ in range(3)]

                @torch.compile(backend='lathe', dynamic=dynamic, options=QUICK)
                def function(layer, x):
                    return layer(x) + 1
                for layer in layers:
                    self.assert_same(function(layer, x), layer(x) + 1)
                self.assertEqual(len(parts), 3)
                kept = layers[1]
                del layer, layers
                gc.collect()
                self.assertEqual([each() is not None for each in parts], [False, True, False])
                self.assert_same(function(kept, x), kept(x) + 1)
                self.assertEqual(len(parts), 3)
                del kept
                torch._dynamo.reset()
                gc.collect()
                self.assertEqual([each() for each in parts], [None] * 3)


DRIVER = pathlib.Path(os.environ['LATHE_BUILD_DIR']).resolve() / 'fake_cuda' / 'libfake_cuda_driver.so'


class Gpus(Cases):
    def test_targets_and_tensors(self):
        first, second = torch.device('cuda', 0), torch.device('cuda', 1)
        self.assertEqual(_lower.target_of(second, Options()), 'cuda:1')
        for asked in ('cuda:1', 'cuda', 'sm_90'):
            self.assertEqual(_lower.target_of(second, Options(device=asked)), asked)
        for device, asked in ((first, 'cuda:1'), (second, 'cuda:0'), (first, 'cpu'), (torch.device('cpu'), 'cuda')):
            with self.subTest(asked), self.assertRaisesRegex(lathe.Error, f"device is one for tensors on {device}, got '{asked}'"):
                _lower.target_of(device, Options(device=asked))

    @unittest.skipIf(not DRIVER.exists(), 'there is no stand-in for the driver')
    def test_an_engine_is_opened_where_its_tensors_are(self):
        # A process of its own, whose driver is the stand-in; PyTorch has no GPU there, and what it would do is said instead.
        environment = os.environ | {'LATHE_CUDA_DRIVER': str(DRIVER), 'LATHE_NVRTC': str(DRIVER.parent / 'libnvrtc.so')}
        done = subprocess.run([sys.executable, __file__, 'two-gpus'], env=environment, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, 'as asked\n'), done.stderr)


def open_on_two_gpus():
    """Opens a plan for each of two GPUs while the other one is current."""
    driver = ctypes.CDLL(str(DRIVER))
    driver.fake_cuda_allocated_bytes.restype = ctypes.c_size_t
    driver.fake_cuda_set_device_count(2)
    assert driver.cuInit(0) == 0
    contexts = [ctypes.c_void_p() for _ in range(2)]
    for index, context in enumerate(contexts):
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), index) == 0

    class Current:
        """torch.cuda.device() of the stand-in."""

        def __init__(self, device):
            self.context = contexts[torch.device(device).index]

        def __enter__(self):
            assert driver.cuCtxPushCurrent_v2(self.context) == 0

        def __exit__(self, *_):
            assert driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())) == 0
    weight = torch.randn(64, 64)
    program = torch.export.export(Calling(lambda x: x @ weight).eval(), (torch.randn(4, 64),))
    onnx = _lower._onnx.to_onnx(program)
    with _lower._plans.saved(onnx) as path:
        plan = _lower._plans.plan_of(path, {}, 'cuda:0', Options(**QUICK, cache=''))
    names = [[(value.name, torch.float32) for value in values] for values in (onnx.model.graph.inputs, onnx.model.graph.outputs)]
    with unittest.mock.patch('torch.cuda.device', Current):
        for index in (0, 1):
            before = [driver.fake_cuda_allocated_bytes(each) for each in (0, 1)]
            with Current(f'cuda:{1 - index}'):
                part = _part.Part(plan, *names, [0], torch.device('cuda', index), 1)
            grown = [driver.fake_cuda_allocated_bytes(each) - bytes for each, bytes in zip((0, 1), before)]
            assert grown[index] >= 64 * 64 * 4 and grown[1 - index] == 0, (index, grown)
            del part
    print('as asked')


if __name__ == '__main__':
    if sys.argv[1:] == ['two-gpus']:
        open_on_two_gpus()
    else:
        unittest.main()
