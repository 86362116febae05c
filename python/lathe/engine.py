# SPDX-License-Identifier: Apache-2.0
"""Engines as functions of arrays."""
import contextlib
import functools
import html
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from lathe import _tensorrt
from lathe import tensorrt as trt
from lathe._deferred import Deferred
from lathe._device_arrays import Place, place_of
from lathe._host_arrays import HostOutput, host_place
from lathe._progress import shown
from lathe._strategies import CacheFile, Strategies
from lathe.tensorrt._dtypes import TYPE_STRINGS

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred('numpy')

Shape = Sequence[int]
Described: TypeAlias = 'dict[str, tuple[Any, tuple[int, ...]]]'


class Error(RuntimeError):
    """What the library refused. `code` is like 'LATHE-2101', or None; `node` the ONNX node to blame, or None."""

    def __init__(self, message: str, node: str | None = None) -> None:
        super().__init__(message)
        code = re.search(r'LATHE-\d+', message)
        self.code = code[0] if code else None
        self.node = node


class Reports(trt.ILogger):
    """Keeps the errors of one object's calls; lets go of what is less."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []

    def log(self, severity: trt.ILogger.Severity, msg: str) -> None:
        if severity <= trt.ILogger.Severity.ERROR:
            self.errors.append(msg)

    def error(self, what: str) -> Error:
        """What was logged since the last call, as an exception."""
        text = '; '.join(self.errors) or _tensorrt._last_error() or what
        self.errors.clear()
        return Error(text)


def build(model: str | os.PathLike[str] | bytes, *, shapes: Mapping[str, Shape | Sequence[Shape]] | None = None,
          target: str = 'cpu', precision: trt.DataType | None = None, budget: float | None = None,
          threads: int = 0, elements: Mapping[str, int | Sequence[Shape] | None] | None = None,
          progress: bool = False) -> 'Engine':
    """Compiles an ONNX model, a path or the bytes of a ModelProto, into an Engine.

    shapes: for inputs with open sizes, {name: (min, opt, max)}, or {name: shape} for one shape only. target: 'cpu',
    'cuda' or another one that lathe::setTarget takes. precision: what float32 may be narrowed to,
    trt.float16 or trt.bfloat16. budget: seconds for the search. threads: what the engine is tuned for
    and runs on; 0 for all cores that the process may use. elements: for inputs that are sequences, {name: how many tensors}
    or {name: [shape of each]}, -1 for open sizes; inputs of the Engine are then name_0, name_1 and so on. None in place of the
    number is for an optional input that is not given. progress: whether a terminal or a notebook shows how far it is. Raises Error.
    """
    reports = Reports()
    builder = trt.Builder(reports)
    network = builder.create_network(0)
    config = builder.create_builder_config()
    parser = trt.OnnxParser(network, reports)
    parser.set_builder_config(config)
    with shown(progress) as monitor:
        config.progress_monitor = monitor
        for name, told in (elements or {}).items():
            _tell_elements(parser, name, told, reports)
        parsed = parser.parse_from_file(os.fspath(model)) if isinstance(model, (str, os.PathLike)) else parser.parse(model)
        if not parsed:
            problem = parser.get_error(0) if parser.num_errors else None
            raise Error(problem.desc() if problem else _tensorrt._last_error(),
                        problem.node_name() or None if problem else None)
        _configure(config, target, precision, budget, threads)
        if shapes:
            config.add_optimization_profile(_profile(builder, shapes))
        plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise reports.error('the build failed')
    return Engine(bytes(plan), threads)


def _tell_elements(parser: trt.OnnxParser, name: str, told: int | Sequence[Shape] | None, reports: Reports) -> None:
    count, dims = -1, None
    if isinstance(told, int):
        count = told
    elif told is not None:
        shapes = [tuple(shape) for shape in told]
        if len({len(shape) for shape in shapes}) > 1:
            raise Error(f'the tensors of {name} have different numbers of dimensions: {shapes}')
        count = len(shapes)
        dims = tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes)) if shapes else None
    if not parser._set_input_elements(name, count, dims):
        raise reports.error(f'input {name} cannot be {told}')


def _configure(config: trt.IBuilderConfig, target: str, precision: trt.DataType | None, budget: float | None,
               threads: int) -> None:
    try:
        config._target = target
        config._set_cpu_threads(threads)
        if budget is not None:
            config._build_budget = budget
        if precision is not None:
            if not isinstance(precision, trt.DataType):
                raise Error(f'precision is trt.float16 or trt.bfloat16, got {precision!r}')
            config._set_precision(precision)
    except ValueError as error:
        raise Error(str(error)) from None


def _profile(builder: trt.Builder, shapes: Mapping[str, Any]) -> trt.IOptimizationProfile:
    profile = builder.create_optimization_profile()
    for name, shape in shapes.items():
        low, best, high = shape if shape and isinstance(shape[0], (tuple, list)) else (shape, shape, shape)
        profile.set_shape(name, tuple(low), tuple(best), tuple(high))
    return profile


def load(path: str | os.PathLike[str], threads: int = 0, runtime_cache: str | os.PathLike[str] | None = None) -> 'Engine':
    """The Engine in a plan file, as Engine() makes it. Raises OSError or Error."""
    with open(path, 'rb') as file:
        return Engine(file.read(), threads, runtime_cache)


class Engine:
    """A compiled model for arrays of the host, or of a GPU where the plan is for one (`is_on_gpu`). One thread at a time;
    engines made from the same plan share nothing.

    plan: the bytes of a plan. threads: what it runs on, on a CPU; 0 for all cores that the process may use. runtime_cache: a file
    of kernels that were compiled for the GPU, which processes may share: what the engine needs is looked for there, and what is
    new is written when the engine goes.
    """

    def __init__(self, plan: bytes, threads: int = 0, runtime_cache: str | os.PathLike[str] | None = None) -> None:
        self.plan = bytes(plan)
        self._reports = Reports()
        try:
            target = json.loads(_tensorrt._plan_json(self.plan))['target']
        except RuntimeError as error:
            raise Error(str(error)) from None
        self.is_on_gpu = target.startswith(('cuda', 'sm_'))
        if not self.is_on_gpu and not target.startswith('cpu'):
            raise Error(f'the plan is for {target}, and lathe.Engine runs those for the CPU and for GPUs of CUDA')
        self._runtime = trt.Runtime(self._reports)
        try:
            self._runtime._set_cpu_threads(threads)
            if runtime_cache is not None:
                self._runtime._set_runtime_cache_file(os.fspath(runtime_cache))
        except ValueError as error:
            raise Error(str(error)) from None
        self._engine = self._runtime.deserialize_cuda_engine(self.plan)
        if self._engine is None:
            raise self._reports.error('the plan cannot be loaded')
        self._input_types = self._types(trt.TensorIOMode.INPUT)
        self._output_types = self._types(trt.TensorIOMode.OUTPUT)
        self._strategies = Strategies()
        self._writing: trt.IExecutionContext | None = None
        self._results = {} if self.is_on_gpu else {name: HostOutput(dtype) for name, dtype in self._output_types.items()}
        self._context = self._allocating_context()

    def _types(self, mode: trt.TensorIOMode) -> dict[str, str]:
        """{input or output: its type, as in TYPE_STRINGS}. Raises TypeError."""
        names = [name for name in map(self._engine.get_tensor_name, range(self._engine.num_io_tensors))
                 if self._engine.get_tensor_mode(name) == mode]
        types = {name: self._engine.get_tensor_dtype(name) for name in names}
        for name, dtype in types.items():
            if dtype not in TYPE_STRINGS:
                raise TypeError(f'{name} is of {dtype}, for which arrays have no type: use lathe.tensorrt')
        return {name: TYPE_STRINGS[dtype] for name, dtype in types.items()}

    def _described(self, types: dict[str, str]) -> Described:
        return {name: (np.dtype(dtype).type, tuple(self._engine.get_tensor_shape(name))) for name, dtype in types.items()}

    @functools.cached_property
    def inputs(self) -> Described:
        """{name: (type of NumPy, shape)}, where -1 is an open size."""
        return self._described(self._input_types)

    @functools.cached_property
    def outputs(self) -> Described:
        """{name: (type of NumPy, shape)}, where -1 is an open size."""
        return self._described(self._output_types)

    def _new_context(self) -> trt.IExecutionContext:
        context = self._engine.create_execution_context(self._strategies.config_of(self._engine))
        if context is None:
            raise self._reports.error('no context can be made')
        return context

    def _allocating_context(self) -> trt.IExecutionContext:
        """A context whose outputs on the CPU get new memory in each run."""
        context = self._new_context()
        for name, allocator in self._results.items():
            if not context.set_output_allocator(name, allocator):
                raise self._reports.error(f'output {name} cannot be given memory')
        return context

    @contextlib.contextmanager
    def strategies(self, *, allocation: trt.ExecutionContextAllocationStrategy | None = None,
                   specialization: trt.DynamicShapesKernelSpecializationStrategy | None = None,
                   cuda_graphs: trt.CudaGraphStrategy | None = None,
                   runtime_cache: str | os.PathLike[str] | None = None) -> Iterator['Engine']:
        """A with statement inside which run(), and what bind() makes there, have these strategies, and others as around it; nothing
        is compiled for it. Behind it all is as before, also after an exception.

        allocation: when contexts allocate what they work in. specialization: whether kernels are made for the sizes that come.
        cuda_graphs: whether runs are captured as CUDA graphs. runtime_cache: a file of kernels that were compiled for the GPU while
        engines ran, which is read at once and written behind the statement; what is wrong with it is a warning of the library's,
        and no failure. Raises Error, for USER_MANAGED as well: an Engine owns its memory.
        """
        if allocation == trt.ExecutionContextAllocationStrategy.USER_MANAGED:
            raise Error('an Engine owns the memory that it works in: USER_MANAGED is for contexts of lathe.tensorrt')
        cache = CacheFile(runtime_cache) if runtime_cache is not None else None
        before = self._strategies, self._context, self._writing
        self._strategies = Strategies(allocation, specialization, cuda_graphs, cache).within(self._strategies)
        try:
            self._context, self._writing = self._allocating_context(), None
            yield self
        finally:
            self._strategies, self._context, self._writing = before
            if cache is not None:
                cache.save()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan, which load() reads. Raises OSError."""
        with open(path, 'wb') as file:
            file.write(self.plan)

    def __call__(self, *arrays: Any) -> Any:
        """Outputs of the inputs in their order: one array, or a tuple of several."""
        if len(arrays) != len(self._input_types):
            raise TypeError(f'takes {len(self._input_types)} inputs ({", ".join(self._input_types)}), got {len(arrays)}')
        results = tuple(self.run(dict(zip(self._input_types, arrays))).values())
        return results[0] if len(results) == 1 else results

    def run(self, feeds: Mapping[str, Any], outputs: Mapping[str, Any] | None = None, stream: int = 0) -> dict[str, Any]:
        """{output name: array} of {input name: array}; inputs are read in place where they are contiguous.

        On the CPU, arrays are NumPy's or come from DLPack. outputs: arrays to write into, of all outputs; they are contiguous
        and of the shape that the inputs give them (output_shapes()). Without them there are new ones.
        On a GPU, arrays have __cuda_array_interface__ or DLPack, and outputs must be given. The run is put on the stream, an
        address as CUDA, PyTorch and CuPy have it; arrays stay as they are until it is done there.
        Raises TypeError for missing names, other element types and arrays on other devices, Error where the library
        refuses shapes or fails.
        """
        if feeds.keys() != self._input_types.keys():
            raise TypeError(f'takes inputs {sorted(self._input_types)}, got {sorted(feeds)}')
        self._check_stream(stream)
        if outputs is None and self.is_on_gpu:
            raise TypeError('outputs of an engine for a GPU are given as arrays of its memory: run(feeds, outputs)')
        context = self._context if outputs is None else self._context_to_write()
        held = [self._bind_input(context, name, array, stream) for name, array in feeds.items()]
        self._check_shapes(context)
        if outputs is not None:
            held += self._bind_outputs(context, outputs, stream)
        if not context.execute_async_v3(stream):
            raise self._reports.error('the run failed')
        del held
        return dict(outputs) if outputs is not None else {name: result.take() for name, result in self._results.items()}

    def output_shapes(self, shapes: Mapping[str, Shape]) -> dict[str, tuple[int, ...]]:
        """The shapes of outputs for {input name: shape}; -1 for sizes that only a run tells. Raises Error."""
        context = self._context_to_write()
        for name, shape in shapes.items():
            if not context.set_input_shape(name, tuple(shape)):
                raise self._reports.error(f'input {name} cannot have shape {tuple(shape)}')
        return {name: tuple(context.get_tensor_shape(name)) for name in self._output_types}

    def bind(self, arrays: Mapping[str, Any], stream: int = 0) -> Callable[[], None]:
        """A function without arguments that reads these inputs and writes these outputs, {name: array} of all of both.

        It checks and looks up nothing, takes some microseconds less than run(), and may run at the same time as others of this
        engine. Arrays stay where they are while it lives: what the program writes into them is what the next run
        reads. Outputs must be contiguous and of the shape that the inputs give them. On a GPU, runs are put on the stream, as
        run() does. Raises as run().
        """
        if arrays.keys() != self._input_types.keys() | self._output_types.keys():
            raise TypeError(f'takes arrays for {sorted(self._input_types.keys() | self._output_types.keys())}, got {sorted(arrays)}')
        self._check_stream(stream)
        context = self._new_context()
        held = [self._bind_input(context, name, arrays[name], stream, copies=False) for name in self._input_types]
        self._check_shapes(context)
        held += self._bind_outputs(context, {name: arrays[name] for name in self._output_types}, stream)
        execute, reports = context.execute_async_v3, self._reports

        def bound_run(held: list[Place] = held) -> None:
            if not execute(stream):
                raise reports.error('the run failed')
        return bound_run

    def _context_to_write(self) -> trt.IExecutionContext:
        """A context whose outputs are given by address; on the CPU that of run() without outputs has allocators instead."""
        if self.is_on_gpu:
            return self._context
        if self._writing is None:
            self._writing = self._new_context()
        return self._writing

    def _check_stream(self, stream: int) -> None:
        if stream and not self.is_on_gpu:
            raise Error('a stream is of a GPU, and this engine is for the CPU')

    def _check_shapes(self, context: trt.IExecutionContext) -> None:
        missing = context.infer_shapes()
        if missing:
            raise self._reports.error(f'these inputs have no shape or values: {missing}')

    def _bind_input(self, context: trt.IExecutionContext, name: str, value: Any, stream: int, copies: bool = True) -> Place:
        dtype = self._input_types[name]
        place = place_of(name, value, dtype, stream) if self.is_on_gpu else host_place(name, value, dtype, copies)
        if not context.set_input_shape(name, place.shape):
            raise self._reports.error(f'input {name} cannot have shape {place.shape}')
        if not context.set_tensor_address(name, place.address):
            raise self._reports.error(f'input {name} cannot be read')
        return place

    def _bind_outputs(self, context: trt.IExecutionContext, outputs: Mapping[str, Any], stream: int) -> list[Place]:
        if outputs.keys() != self._output_types.keys():
            raise TypeError(f'takes outputs {sorted(self._output_types)}, got {sorted(outputs)}')
        places = []
        for name, dtype in self._output_types.items():
            shape = tuple(context.get_tensor_shape(name))
            if self.is_on_gpu:
                place = place_of(name, outputs[name], dtype, stream, writes=True)
            else:
                place = host_place(name, outputs[name], dtype, copies=False)
            if place.shape != shape or not self.is_on_gpu and not place.keeper.flags.writeable:
                raise TypeError(f'output {name} takes a contiguous array of shape {shape} that can be written to')
            if not context.set_tensor_address(name, place.address):
                raise self._reports.error(f'output {name} cannot be written')
            places.append(place)
        return places

    def __repr__(self) -> str:
        def listed(tensors: dict[str, tuple[Any, tuple[int, ...]]]) -> str:
            return ', '.join(f'{name}: {np.dtype(dtype)}{list(shape)}' for name, (dtype, shape) in tensors.items())
        return f'<lathe.Engine ({listed(self.inputs)}) -> ({listed(self.outputs)}), {len(self.plan)} bytes>'

    def _repr_html_(self) -> str:
        rows = ''.join(f'<tr><td>{kind}</td><td>{html.escape(name)}</td><td>{np.dtype(dtype)}</td>'
                       f'<td>{list(shape)}</td></tr>'
                       for kind, tensors in (('input', self.inputs), ('output', self.outputs))
                       for name, (dtype, shape) in tensors.items())
        return f'<table><tr><th></th><th>name</th><th>type</th><th>shape</th></tr>{rows}</table>'
