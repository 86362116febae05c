# SPDX-License-Identifier: Apache-2.0
"""Engines as functions of arrays."""
import html
import json
import os
import re

import numpy as np

from lathe import tensorrt as trt


class Error(RuntimeError):
    """What the library refused. `code` is like 'LATHE-2101', or None; `node` the ONNX node to blame, or None."""

    def __init__(self, message, node=None):
        super().__init__(message)
        code = re.search(r'LATHE-\d+', message)
        self.code = code[0] if code else None
        self.node = node


class _Reports(trt.ILogger):
    """Keeps the errors of one object's calls; lets go of what is less."""

    def __init__(self):
        super().__init__()
        self.errors = []

    def log(self, severity, msg):
        if severity <= trt.ILogger.Severity.ERROR:
            self.errors.append(msg)

    def error(self, what):
        text = '; '.join(self.errors) or trt._tensorrt._last_error() or what
        self.errors.clear()
        return Error(text)


def build(model, *, shapes=None, target='cpu', precision=None, budget=None):
    """Compiles an ONNX model, a path or the bytes of a ModelProto, into an Engine.

    shapes: for inputs with open sizes, {name: (min, opt, max)}, or {name: shape} for one shape only. target: 'cpu',
    or another CPU that lathe::setTarget takes; an Engine is for the CPU. precision: what float32
    may be narrowed to, trt.float16 or trt.bfloat16. budget: seconds for the search. Raises Error.
    """
    reports = _Reports()
    builder = trt.Builder(reports)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, reports)
    parsed = parser.parse_from_file(os.fspath(model)) if isinstance(model, (str, os.PathLike)) else parser.parse(model)
    if not parsed:
        problem = parser.get_error(0) if parser.num_errors else None
        raise Error(problem.desc() if problem else trt._tensorrt._last_error(),
                    problem.node_name() or None if problem else None)
    config = builder.create_builder_config()
    _configure(config, target, precision, budget)
    if shapes:
        config.add_optimization_profile(_profile(builder, shapes))
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise reports.error('the build failed')
    return Engine(bytes(plan))


def _configure(config, target, precision, budget):
    try:
        config._target = target
        if budget is not None:
            config._build_budget = budget
        if precision is not None:
            config._set_precision(precision)
    except ValueError as error:
        raise Error(str(error)) from None


def _profile(builder, shapes):
    profile = builder.create_optimization_profile()
    for name, shape in shapes.items():
        ranges = shape if isinstance(shape[0], (tuple, list)) else (shape, shape, shape)
        profile.set_shape(name, *(tuple(each) for each in ranges))
    return profile


def load(path):
    """The Engine in a plan file. Raises OSError or Error."""
    with open(path, 'rb') as file:
        return Engine(file.read())


class Engine:
    """A compiled model for host arrays. One thread at a time; engines made from the same plan share nothing.

    plan: the bytes of a plan. `inputs` and `outputs` are {name: (dtype, shape)}, where -1 is an open size.
    """

    def __init__(self, plan):
        self.plan = bytes(plan)
        self._reports = _Reports()
        try:
            target = json.loads(trt._tensorrt._plan_json(self.plan))['target']
        except RuntimeError as error:
            raise Error(str(error)) from None
        if not target.startswith('cpu'):
            raise Error(f'the plan is for {target}, and lathe.Engine runs those for the CPU: build with target="cpu", or '
                        'run it through lathe.tensorrt')
        self._runtime = trt.Runtime(self._reports)
        self._engine = self._runtime.deserialize_cuda_engine(self.plan)
        if self._engine is None:
            raise self._reports.error('the plan cannot be loaded')
        self._context = self._engine.create_execution_context()
        if self._context is None:
            raise self._reports.error('no context can be made')
        self.inputs, self.outputs = {}, {}
        for index in range(self._engine.num_io_tensors):
            name = self._engine.get_tensor_name(index)
            is_input = self._engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
            described = (trt.nptype(self._engine.get_tensor_dtype(name)), tuple(self._engine.get_tensor_shape(name)))
            (self.inputs if is_input else self.outputs)[name] = described

    def save(self, path):
        """Writes the plan, which load() reads. Raises OSError."""
        with open(path, 'wb') as file:
            file.write(self.plan)

    def __call__(self, *arrays):
        """Outputs of the inputs in their order: one array, or a tuple of several."""
        if len(arrays) != len(self.inputs):
            raise TypeError(f'takes {len(self.inputs)} inputs ({", ".join(self.inputs)}), got {len(arrays)}')
        results = tuple(self.run(dict(zip(self.inputs, arrays))).values())
        return results[0] if len(results) == 1 else results

    def run(self, feeds):
        """{output name: array} of {input name: array}; inputs are read in place where they are contiguous.

        Arrays are NumPy's or come from DLPack on the CPU. Raises TypeError for missing names and other element types,
        Error where the library refuses shapes or fails.
        """
        if feeds.keys() != self.inputs.keys():
            raise TypeError(f'takes inputs {sorted(self.inputs)}, got {sorted(feeds)}')
        held = [self._bind_input(name, array) for name, array in feeds.items()]
        missing = self._context.infer_shapes()
        if missing:
            raise self._reports.error(f'these inputs have no shape or values: {missing}')
        results = {name: self._bind_output(name) for name in self.outputs}
        if not self._context.execute_async_v3(0):
            raise self._reports.error('the run failed')
        del held
        return {name: allocator.array() for name, allocator in results.items()}

    def _bind_input(self, name, array):
        if not isinstance(array, np.ndarray):
            array = np.from_dlpack(array) if hasattr(array, '__dlpack__') else np.asarray(array)
        dtype = self.inputs[name][0]
        if array.dtype != dtype:
            raise TypeError(f'input {name} has elements of {np.dtype(dtype)}, got {array.dtype}')
        array = np.ascontiguousarray(array).reshape(array.shape)
        if not self._context.set_input_shape(name, array.shape):
            raise self._reports.error(f'input {name} cannot have shape {array.shape}')
        if not self._context.set_tensor_address(name, array.ctypes.data):
            raise self._reports.error(f'input {name} cannot be read')
        return array

    def _bind_output(self, name):
        allocator = _HostOutput(self.outputs[name][0])
        if not self._context.set_output_allocator(name, allocator):
            raise self._reports.error(f'output {name} cannot be given memory')
        self._context.set_tensor_address(name, 0)
        return allocator

    def __repr__(self):
        def listed(tensors):
            return ', '.join(f'{name}: {np.dtype(dtype)}{list(shape)}' for name, (dtype, shape) in tensors.items())
        return f'<lathe.Engine ({listed(self.inputs)}) -> ({listed(self.outputs)}), {len(self.plan)} bytes>'

    def _repr_html_(self):
        rows = ''.join(f'<tr><td>{kind}</td><td>{html.escape(name)}</td><td>{np.dtype(dtype)}</td>'
                       f'<td>{list(shape)}</td></tr>'
                       for kind, tensors in (('input', self.inputs), ('output', self.outputs))
                       for name, (dtype, shape) in tensors.items())
        return f'<table><tr><th></th><th>name</th><th>type</th><th>shape</th></tr>{rows}</table>'


class _HostOutput(trt.IOutputAllocator):
    """Memory for one output, whose shape may be known only when it has been computed."""

    def __init__(self, dtype):
        super().__init__()
        self._dtype = np.dtype(dtype)
        self._memory, self._offset, self._shape = None, 0, None

    def reallocate_output(self, tensor_name, memory, size, alignment):
        alignment = max(alignment, 64)
        self._memory = np.empty(max(size, 1) + alignment, np.uint8)
        self._offset = -self._memory.ctypes.data % alignment
        return self._memory.ctypes.data + self._offset

    def notify_shape(self, tensor_name, shape):
        self._shape = tuple(shape)

    def array(self):
        size = trt.volume(self._shape) * self._dtype.itemsize
        if size == 0:
            return np.empty(self._shape, self._dtype)
        return self._memory[self._offset:self._offset + size].view(self._dtype).reshape(self._shape)
