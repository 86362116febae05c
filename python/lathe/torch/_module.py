# SPDX-License-Identifier: Apache-2.0
"""Modules that are compiled ahead of time."""
import contextlib
import dataclasses
import functools
import inspect
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.convert_frame import compile_lock
from torch.export import Dim
from torch.utils import _pytree as pytree
from torch.utils._sympy.value_ranges import ValueRanges

from lathe.engine import Error
from lathe.torch import _onnx
from lathe.torch._limit import Overdue, at_most
from lathe.torch._lower import Lowered, built, lower, set_ranges, share_memory
from lathe.torch._options import Options
from lathe.torch._part import Part

Dynamic = Mapping[str, Mapping[int, tuple[int, int, int]]]


def compile(model: torch.nn.Module, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
            dynamic: Dynamic | None = None, **options: Any) -> 'Module':
    """A module that computes what `model` does for inputs like these, with engines; the model itself stays as it is.

    args, kwargs: inputs of forward(), tensors in whatever tuples, lists and dicts; other values are constants from now on.
    dynamic: {argument of forward: {axis: (min, opt, max)}} for sizes that stay open; other sizes are fixed.
    options: the fields of Options.

    Parts that no engine can compute stay in PyTorch, with one warning that says which, where and why, unless `strict`
    makes it an error. Raises Error for models in training mode, whose outputs would need gradients, and what the library refuses.
    """
    chosen = Options.of(options)
    signature = inspect.signature(model.forward)
    # What is given by name comes in the order of forward(), as it does in exported programs.
    bound = signature.bind(*args, **kwargs or {})
    args, kwargs = bound.args, bound.kwargs
    training = [name or type(model).__name__ for name, module in model.named_modules() if module.training]
    if training:
        raise Error(f'{training[0]} is in training mode, and engines are for inference: call model.eval() first')
    with compile_lock:  # PyTorch traces and exports one program at a time
        try:
            program, examples = export(model, args, kwargs, dynamic or {}, chosen)
        except Overdue:
            tell_overdue(chosen)
            dynamic = {}
            program, examples = export(model, args, kwargs, dynamic, chosen)
        lowered = lower(program, examples, chosen, functools.partial(built, is_whole=True))
    tell(lowered.stays, chosen)
    names = [name for name, each in signature.parameters.items() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return Module(lowered, model, program, Call(args, kwargs, names), dynamic or {}, chosen)


def tell(stays: list[str], options: Options) -> None:
    """The one warning of what stays in PyTorch; Error where the options are strict."""
    if stays:
        warn('these stay in PyTorch: ' + '; '.join(dict.fromkeys(stays)), options)


def tell_overdue(options: Options) -> None:
    """The warning that sizes do not stay open; Error where the options are strict."""
    warn(f'torch.export has not captured the model with open sizes in {options.open_seconds} seconds (open_seconds), so that '
         'engines are for sizes of the inputs alone', options)


def warn(text: str, options: Options) -> None:
    """A warning; Error where the options are strict."""
    if options.strict:
        raise Error(text)
    warnings.warn(f'lathe: {text}', stacklevel=4)


def export(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any],
           dynamic: Dynamic, options: Options) -> tuple[torch.export.ExportedProgram, list[torch.Tensor]]:
    """The exported program and the tensors that it was exported with. Raises Error, and Overdue where open sizes take too long."""
    bound = inspect.signature(model.forward).bind(*args, **kwargs)
    unknown = sorted(set(dynamic) - set(bound.arguments))
    if unknown:
        raise Error(f'dynamic names {", ".join(unknown)}, and forward() was given {", ".join(bound.arguments)}')
    named = {name: _sized(name, value, dynamic.get(name, {})) for name, value in bound.arguments.items()}
    shapes = {name: _dims(value, dynamic.get(name, {})) for name, value in named.items()}
    bound.arguments.update(named)
    try:
        with _onnx.quiet(), torch.no_grad(), at_most(options.open_seconds) if dynamic else contextlib.nullcontext():
            program = torch.export.export(model, bound.args, bound.kwargs, dynamic_shapes=_in_order(shapes, bound),
                                          strict=False)
    except Exception as error:  # whatever tracing a program may raise
        raise Error(f'torch.export cannot capture {type(model).__name__}: {error}') from error
    set_ranges(program, [{axis: ValueRanges(low, high) for axis, (low, _, high) in axes.items()}
                         for name, value in named.items() for axes in [dynamic.get(name, {})]
                         for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)])
    leaves = [leaf for leaf in pytree.tree_leaves((bound.args, bound.kwargs)) if isinstance(leaf, torch.Tensor)]
    return program, leaves


def _in_order(shapes: dict[str, Any], bound: inspect.BoundArguments) -> dict[str, Any] | None:
    return shapes if any(any(axes for axes in pytree.tree_leaves(each)) for each in shapes.values()) else None


def _sized(name: str, value: Any, axes: Mapping[int, tuple[int, int, int]]) -> Any:
    """The tensor with its best sizes, of at least 2: a size of 1 is taken for a constant where a model is traced."""
    if not axes:
        return value
    if not isinstance(value, torch.Tensor):
        raise Error(f'dynamic names {name}, which is no tensor')
    for axis, (low, best, high) in axes.items():
        if not 0 <= low <= best <= high or not 0 <= axis < value.dim() or value.shape[axis] == 0:
            raise Error(f'dynamic gives axis {axis} of {name}, of shape {tuple(value.shape)}, the sizes {(low, best, high)}')
        wanted = min(max(best, 2), high)
        repeats = -(-wanted // value.shape[axis])
        value = torch.cat([value] * repeats, axis).narrow(axis, 0, wanted)
    return value.contiguous()


def _dims(value: Any, axes: Mapping[int, tuple[int, int, int]]) -> Any:
    if axes:
        return {axis: Dim.DYNAMIC(min=low, max=high) for axis, (low, _, high) in axes.items() if low < high}
    return pytree.tree_map(lambda _: None, value)


def exact(constant: Any) -> tuple[type, Any]:
    """What tells a constant from those that are equal and not the same, such as 2 from 2.0 and True, and -0.0 from 0.0."""
    return type(constant), repr(constant) if isinstance(constant, float | complex) else constant


class Call:
    """How forward() is called: which of its values are tensors, in which order, and what the others are."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], names: Sequence[str]) -> None:
        leaves, self._spec = pytree.tree_flatten((args, kwargs))
        self._is_tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        self._constants = [None if is_tensor else leaf for is_tensor, leaf in zip(self._is_tensor, leaves)]
        self._count, self._keywords, self._names = len(args), tuple(kwargs), list(names)
        self._is_flat = len(leaves) == len(args) + len(kwargs) and all(self._is_tensor)
        self.described = [(tuple(leaf.shape), leaf.dtype, leaf.device) for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The tensors of a call. Raises TypeError where it differs in more than values of tensors."""
        if len(args) != self._count or tuple(kwargs) != self._keywords:
            args, kwargs = self._as_compiled(args, kwargs)
        if self._is_flat:
            return [*args, *kwargs.values()]
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._spec:
            raise TypeError(f'the module was compiled for arguments of the form {self._spec}, got {spec}')
        for leaf, constant, is_tensor in zip(leaves, self._constants, self._is_tensor):
            if not is_tensor and exact(leaf) != exact(constant):
                raise TypeError(f'{constant!r} became a constant when the module was compiled, got {leaf!r} for it')
        return [leaf for leaf, is_tensor in zip(leaves, self._is_tensor) if is_tensor]

    def _as_compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = dict(zip(self._names, args)) | kwargs
        wanted = [*self._names[:self._count], *self._keywords]
        if len(args) > len(self._names) or len(given) < len(args) + len(kwargs) or sorted(given) != sorted(wanted):
            raise TypeError(f'the module was compiled for the arguments {wanted}, got {len(args)} and {sorted(kwargs)}')
        values = [given[name] for name in wanted]
        return tuple(values[:self._count]), dict(zip(self._keywords, values[self._count:]))

    def examples(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of this form, of zeros."""
        tensors = iter([torch.zeros(shape, dtype=dtype, device=device) for shape, dtype, device in self.described])
        leaves = [next(tensors) if is_tensor else constant for is_tensor, constant in zip(self._is_tensor, self._constants)]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return args, kwargs


class Module(torch.nn.Module):
    """A compiled model, for inference. It is saved by torch.save() and pickle: the plans of its engines, what stays in PyTorch,
    and the buffers that the model writes. Several threads may call it, one run of an engine at a time, and refit it: a call has all
    weights of one model."""

    def __init__(self, lowered: Lowered, model: torch.nn.Module, program: torch.export.ExportedProgram, call: Call,
                 dynamic: Dynamic, options: Options) -> None:
        super().__init__()
        self.options, self._call, self._dynamic = options, call, dynamic
        self._lock = threading.Lock()  # of what _take() sets
        self._out_spec = program.call_spec.out_spec
        self._take(lowered, model)
        self.eval()

    def _take(self, lowered: Lowered, model: torch.nn.Module) -> None:
        buffers = dict(model.named_buffers(remove_duplicate=False))
        with self._lock:
            self._lowered = lowered.run
            self._writes = lowered.writes
            self._model = model if lowered.run is None else None
            self._states: list[str] = []
            for state in lowered.states if lowered.run is not None else []:
                name = self._free_name(state.replace('.', '__'))
                self.register_buffer(name, buffers[state])
                self._states.append(name)

    def _free_name(self, name: str) -> str:
        """What a buffer can be called that is to have this name: a.b may meet a__b, or what a module has itself."""
        while name in self._states or name not in self._buffers and hasattr(self, name):
            name += '_'
        return name

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = self.__dict__ | {'_buffers': dict(self._buffers), '_modules': dict(self._modules)}
        del state['_lock']
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._lock = threading.Lock()

    def _parts(self) -> list[Part]:
        """In the order of the graph, which that of submodules need not be."""
        if not isinstance(self._lowered, torch.fx.GraphModule):
            return [self._lowered] if self._lowered is not None else []
        calls = self._lowered.graph.find_nodes(op='call_module')
        found = [self._lowered.get_submodule(str(call.target)) for call in calls]
        return [part for part in found if isinstance(part, Part)]

    def train(self, mode: bool = True) -> 'Module':
        """Raises Error where training is asked for."""
        if mode:
            raise Error('a module that lathe.torch has compiled is for inference: train the model, then refit() this one')
        super().train(False)
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        tensors = self._call.tensors(args, kwargs)
        if torch.is_grad_enabled() and any(isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in tensors):
            raise Error('an input wants gradients, and engines are for inference: call it in torch.no_grad()')
        with self._lock:
            model, lowered, writes = self._model, self._lowered, self._writes
            tensors = [*(getattr(self, name) for name in self._states), *tensors]
        with torch.no_grad():
            if model is not None:
                return model(*args, **kwargs)
            if writes and share_memory(tensors):
                raise Error('inputs share memory that the model writes: give it copies')
            values = lowered(*tensors)
        return pytree.tree_unflatten(list(values), self._out_spec)

    def refit(self, model: torch.nn.Module) -> None:
        """Gives the engines the weights of another model of the same architecture. It holds whole or not at all. Raises Error
        where the module was compiled without refit=True, the model is another one, or capturing it takes longer than it may."""
        if not self.options.refit:
            raise Error('the weights of these engines cannot be replaced: compile with refit=True')
        with compile_lock:
            self._refit(model)

    def _refit(self, model: torch.nn.Module) -> None:
        args, kwargs = self._call.examples()
        try:
            program, examples = export(model, args, kwargs, self._dynamic, self.options)
        except Overdue:
            raise Error(f'torch.export has not captured the model in {self.options.open_seconds} seconds (open_seconds)') from None
        parts = iter(self._parts())

        def refitted(onnx: Any, *_: Any) -> Part:
            part = next(parts, None)
            if part is None:
                raise Error('the model is another one: it has more parts for engines')
            return part.refitted(onnx)
        lowered = lower(program, examples, dataclasses.replace(self.options, strict=False), refitted)
        if (lowered.run is None) != (self._lowered is None) or next(parts, None) is not None:
            raise Error(f'the model cannot take the place of the one that was compiled: {"; ".join(lowered.stays)}')
        self._take(lowered, model)
