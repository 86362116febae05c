# SPDX-License-Identifier: Apache-2.0
"""A graph that an engine computes, as a module of PyTorch."""
import contextlib
import contextvars
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from lathe import tensorrt as trt
from lathe._strategies import CacheFile, Strategies
from lathe.engine import Error, Reports
from lathe.torch._plans import saved

GPU_ALIGNMENT = 256
# An input or output, and its type.
Port = tuple[str, torch.dtype]
_DEFAULT = Strategies()
_strategies = contextvars.ContextVar('lathe.torch.strategies', default=_DEFAULT)


@contextlib.contextmanager
def strategies(*, specialization: trt.DynamicShapesKernelSpecializationStrategy | None = None,
               cuda_graphs: trt.CudaGraphStrategy | None = None,
               runtime_cache: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """A with statement inside which all that was compiled runs with these strategies in this thread, and with others as around it;
    nothing is compiled for it. Behind it all is as before, also after an exception.

    specialization: whether kernels are made for the sizes that come. cuda_graphs: whether runs are captured as CUDA graphs.
    runtime_cache: a file of kernels that were compiled for the GPU while engines ran, which is read when an engine first runs
    here, and written behind the statement. On a CPU none of them does anything.
    """
    cache = CacheFile(runtime_cache) if runtime_cache is not None else None
    token = _strategies.set(Strategies(None, specialization, cuda_graphs, cache).within(_strategies.get()))
    try:
        yield
    finally:
        _strategies.reset(token)
        if cache is not None:
            cache.save()


class OtherSizes(Error):
    """An engine does not take inputs of these shapes."""

    def __init__(self, error: Error, shapes: Sequence[tuple[int, ...]]) -> None:
        super().__init__(str(error), error.node)
        self.shapes = shapes


class Part(torch.nn.Module):
    """An engine that takes and gives tensors, in the order of its inputs and outputs, where they lie.

    results: for each value that it returns an output's number, or ('int', number) for a size that is an int in PyTorch, or
    ('constant', value). single: whether it returns its one value itself, rather than a list. rebuild: a plan for sizes of inputs
    that the plan's ranges do not admit but the program does; None, or it returns None, where there is none.
    """

    def __init__(self, plan: bytes, inputs: Sequence[Port], outputs: Sequence[Port], results: Sequence[Any],
                 device: torch.device, threads: int, single: bool = False,
                 rebuild: Callable[[Sequence[Sequence[int]]], bytes | None] | None = None) -> None:
        super().__init__()
        self.threads, self.device = threads, device
        self.inputs, self.outputs, self.results = list(inputs), list(outputs), list(results)
        self.single, self.rebuild = single, rebuild
        self._lock = threading.Lock()
        self._load(plan)

    def _load(self, plan: bytes) -> None:
        """Goes on with this plan. Raises Error, and goes on as it did, where it cannot be loaded."""
        messages = Reports()
        runtime = trt.Runtime(messages)
        runtime._set_cpu_threads(self.threads)
        if self.device.type == 'cuda' and self.device.index is None:
            self.device = torch.device('cuda', torch.cuda.current_device())
        # Plans are opened on the current GPU, which need not be that of the tensors.
        with contextlib.nullcontext() if self.device.type == 'cpu' else torch.cuda.device(self.device):
            engine = runtime.deserialize_cuda_engine(plan)
            context = engine.create_execution_context() if engine is not None else None
        if engine is None or context is None:
            raise messages.error('the plan cannot be loaded')
        self.plan, self._messages, self._runtime = plan, messages, runtime
        self._engine, self._context, self._default, self._strategies = engine, context, context, _DEFAULT
        self._names = [name for name, _ in self.inputs]
        self._allocators = [Memory(dtype, self.device) for _, dtype in self.outputs]
        self._gpu = None if self.device.type == 'cpu' else self.device.index
        self._alignment = 1 if self._gpu is None else GPU_ALIGNMENT
        self._as_results = not self.single and self.results == list(range(len(self.outputs)))
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        kept = ('plan', 'inputs', 'outputs', 'results', 'device', 'threads', 'single')
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__.update(state, rebuild=None, _lock=threading.Lock())
        self._load(self.plan)

    def refitted(self, onnx: Any) -> 'Part':
        """A copy of this one with the weights of another ONNX program. Raises Error."""
        copy = Part.__new__(Part)
        copy.__setstate__(self.__getstate__())
        refitter = trt.Refitter(copy._engine, copy._messages)
        parser = trt.OnnxParserRefitter(refitter, copy._messages)
        with saved(onnx) as path:
            if not parser.refit_from_file(str(path)) or not refitter.refit_cuda_engine():
                raise copy._messages.error('the weights cannot be replaced')
        copy.plan = bytes(copy._engine.serialize())
        return copy

    def forward(self, *inputs: Any) -> Any:
        """Raises OtherSizes where the program does not take these sizes, Error where the run fails."""
        with self._lock:
            try:
                outputs = self._run(inputs)
            except OtherSizes as other:
                self._build_for(other)
                outputs = self._run(inputs)
        return self._returned(outputs)

    def as_built(self, *inputs: Any) -> Any:
        """What forward() returns, of the engine as it is. Raises OtherSizes, also where one can be built that takes them."""
        with self._lock:
            outputs = self._run(inputs)
        return self._returned(outputs)

    def _returned(self, outputs: list[torch.Tensor]) -> Any:
        if self._as_results:
            return outputs
        values = [outputs[each] if isinstance(each, int) else
                  int(outputs[each[1]]) if each[0] == 'int' else each[1] for each in self.results]
        return values[0] if self.single else values

    def _build_for(self, other: 'OtherSizes') -> None:
        plan = self.rebuild(other.shapes) if self.rebuild is not None else None
        if plan is None:
            raise other
        self._load(plan)

    def _choose(self, wanted: Strategies) -> None:
        """Goes on with a context of these strategies."""
        context = self._default if wanted == _DEFAULT else self._engine.create_execution_context(wanted.config_of(self._engine))
        if context is None:
            raise self._messages.error('no context can be made')
        self._context, self._strategies = context, wanted
        self._forget()

    def _forget(self) -> None:
        """Nothing counts as told to the context."""
        self._shapes: list[Any] = [None] * len(self.inputs)
        self._addresses = [0] * (len(self.inputs) + len(self.outputs))
        self._sizes: list[Any] = []

    # What is not different from the run before is not told to the context again: a call costs what it changes.
    def _run(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        wanted = _strategies.get()
        if wanted is not self._strategies and wanted != self._strategies:
            self._choose(wanted)
        held, changed = [], False
        for index, (name, dtype) in enumerate(self.inputs):
            tensor = inputs[index]
            if not isinstance(tensor, torch.Tensor) or tensor.dtype != dtype or tensor.layout != torch.strided or \
                    not self._is_here(tensor):
                raise self._misplaced(name, tensor, dtype)
            if tensor.is_neg() or not tensor.is_contiguous():  # is_neg: the memory holds the values with the other sign
                tensor = tensor.resolve_neg().contiguous()
            address = tensor.data_ptr()
            if address % self._alignment:
                tensor = tensor.clone()
                address = tensor.data_ptr()
            held.append(tensor)
            changed = changed or tensor.shape != self._shapes[index]
            if address != self._addresses[index] or not address:
                self._tell_address(index, name, tensor)
        if changed:
            self._set_shapes(held)
        outputs = self._placed_outputs()
        stream = 0 if self._gpu is None else torch._C._cuda_getCurrentRawStream(self._gpu)
        if not self._context.execute_async_v3(stream):
            self._forget()
            raise self._messages.error('the run failed')
        return [self._allocators[index].take() if output is None else output for index, output in enumerate(outputs)]

    def _is_here(self, tensor: torch.Tensor) -> bool:
        return tensor.is_cpu if self._gpu is None else tensor.is_cuda and tensor.get_device() == self._gpu

    def _misplaced(self, name: str, value: Any, dtype: torch.dtype) -> TypeError:
        got = f'{value.dtype} of {value.layout} on {value.device}' if isinstance(value, torch.Tensor) else repr(value)
        return TypeError(f'{name} is {dtype} on {self.device}, got {got}')

    def _tell_address(self, place: int, name: str, tensor: torch.Tensor) -> None:
        if not self._context.set_tensor_address(name, tensor.data_ptr() or _dummy(tensor)):
            raise self._messages.error(f'the memory of {name} cannot be used')
        self._addresses[place] = tensor.data_ptr()

    def _set_shapes(self, tensors: Sequence[torch.Tensor]) -> None:
        self._shapes = [None] * len(tensors)
        context = self._context
        taken = all([context.set_input_shape(name, tuple(tensor.shape)) for name, tensor in zip(self._names, tensors)])
        missing = context.infer_shapes() if taken else []
        if not taken or missing:
            raise OtherSizes(self._messages.error(f'inputs without shape or values: {missing}'),
                             [tuple(tensor.shape) for tensor in tensors])
        self._shapes = [tensor.shape for tensor in tensors]
        self._sizes = []

    def _placed_outputs(self) -> list[torch.Tensor | None]:
        """Memory for the outputs; None where a size is known only after the run, and the allocator has it."""
        if not self._sizes:
            sizes = [tuple(self._context.get_tensor_shape(name)) for name, _ in self.outputs]
            for (name, _), size, allocator in zip(self.outputs, sizes, self._allocators):
                if -1 in size and not self._context.set_output_allocator(name, allocator):
                    raise self._messages.error(f'{name} cannot be given memory')
            self._sizes = sizes
        placed: list[torch.Tensor | None] = []
        for place, ((name, dtype), size) in enumerate(zip(self.outputs, self._sizes), len(self.inputs)):
            if -1 in size:
                placed.append(None)
                continue
            tensor = torch.empty(size, dtype=dtype, device=self.device)
            placed.append(tensor)
            address = tensor.data_ptr()
            if address != self._addresses[place] or not address:
                self._tell_address(place, name, tensor)
        return placed


_dummies: dict[torch.device, torch.Tensor] = {}


def _dummy(tensor: torch.Tensor) -> int:
    """An address for tensors without elements, for which PyTorch gives none."""
    if tensor.device not in _dummies:
        _dummies[tensor.device] = torch.empty(GPU_ALIGNMENT, dtype=torch.uint8, device=tensor.device)
    return _dummies[tensor.device].data_ptr()


class Memory(trt.IOutputAllocator):
    """PyTorch's memory for an output whose shape is known only when it has been computed; anew for each run."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__()
        self.dtype, self._device = dtype, device
        self._memory: torch.Tensor | None = None
        self._shape: tuple[int, ...] = (0,)

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        self._memory = torch.empty(max(size, 1), dtype=torch.uint8, device=self._device)
        return self._memory.data_ptr()

    def notify_shape(self, tensor_name: str, shape: trt.Dims) -> None:
        self._shape = tuple(shape)

    def take(self) -> torch.Tensor:
        """The output of the last run."""
        memory, self._memory = self._memory, None
        count = trt.volume(self._shape)
        if count == 0 or memory is None:
            return torch.empty(self._shape, dtype=self.dtype, device=self._device)
        return memory[:count * self.dtype.itemsize].view(self.dtype).reshape(self._shape)
