# SPDX-License-Identifier: Apache-2.0
"""The backend of torch.compile()."""
import contextlib
import copy
import functools
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch._dynamo.convert_frame import compile_lock
from torch.fx import GraphModule, Node

from lathe import _tensorrt
from lathe.engine import Error
from lathe.torch import _onnx
from lathe.torch._graph import formatted
from lathe.torch._limit import Overdue, at_most
from lathe.torch._lower import Lowered, lower, open_axes, share_memory
from lathe.torch._module import exact, tell, tell_overdue
from lathe.torch._options import Options
from lathe.torch._part import OtherSizes, Part

MOST_ENGINES = 64  # of one graph: for modules that share their code, and for sizes that are ints


def backend(graph: GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None,
            mode: str | None = None, name: str | None = None) -> Any:
    """What torch.compile(model, backend='lathe', options={...}) calls with each graph. options: the fields of Options.

    Raises Error where an output would need gradients, and for modes, which are of other backends.
    """
    if mode is not None:
        raise Error(f'mode={mode!r} says nothing to this backend: use options')
    chosen = Options.of(options or {})
    if chosen.refit:
        raise Error('refit is False in torch.compile(), which has engines built anew for other weights, got True: use '
                    'lathe.torch.compile()')
    outputs = graph.graph.output_node().all_input_nodes
    if any(getattr(node.meta.get('example_value'), 'requires_grad', False) for node in outputs):
        raise Error('an output would need gradients, and engines are for inference: call it in torch.no_grad() or '
                    'torch.inference_mode()')
    compiled = _Compiled(graph, example_inputs, chosen)
    with torch._guards.tracing(None):
        # Their values are asked for without a guard on them.
        compiled.engine_for(tuple(each.node.hint if isinstance(each, torch.SymInt) else each for each in example_inputs))
    return compiled


def _is_weight(node: Node, example: Any) -> bool:
    """Whether a tensor is a parameter or a buffer of a module."""
    kind = node.meta.get('tensor_dict', {}).get('_dynamo_static_input_type')
    return isinstance(example, torch.nn.Parameter) or (isinstance(example, torch.Tensor) and kind == 'unguarded')


class _Read(NamedTuple):
    """What a tensor was when its values were read. Writing raises its version; `parameter.data = other` gives it other memory, and
    the former is held, so that none of another has its address."""

    version: int
    address: int
    memory: torch.UntypedStorage

    @classmethod
    def of(cls, tensor: torch.Tensor) -> '_Read':
        return cls(tensor._version, tensor.data_ptr(), tensor.untyped_storage())


class _Weights:
    """Tensors that an engine has taken in, by their places in the arguments, and whether they are still these."""

    def __init__(self, args: tuple[Any, ...], read: Mapping[int, _Read]) -> None:
        places = list(read)
        self.places, self._same = places, _tensorrt._Watched(args, places)
        self._versions = [each.version for each in read.values()]
        self._addresses = [each.address for each in read.values()]
        self._memory = [each.memory for each in read.values()]

    def are_in(self, args: tuple[Any, ...]) -> bool:
        return self._same.are_in(args)

    def changed(self, args: tuple[Any, ...]) -> list[int]:
        """The places of those that have been written, or given other memory, since."""
        versions, addresses = _versions(args, self.places), [args[place].data_ptr() for place in self.places]
        if versions == self._versions and addresses == self._addresses:
            return []
        now, then = zip(versions, addresses), zip(self._versions, self._addresses)
        return [place for place, one, other in zip(self.places, now, then) if one != other]


def _shapes(args: Sequence[Any], places: Sequence[int]) -> list[Any]:
    return [args[place].shape for place in places]


def _versions(args: tuple[Any, ...], places: Sequence[int]) -> list[int]:
    """Those of the tensors; -1, which none was read with, for what has become one of inference mode."""
    try:
        return [args[place]._version for place in places]
    except RuntimeError:
        return [-1 if args[place].is_inference() else args[place]._version for place in places]


class _Engines:
    """What one graph became, for one set of weights and one choice of its numbers. runs_ahead: whether a GPU computes it while
    the program goes on, and it leaves nothing behind but its results. shapes: those of its inputs where it is for no others."""

    def __init__(self, lowered: Lowered, weights: _Weights, inputs: Sequence[int], numbers: list[Any],
                 shapes: list[Any] | None) -> None:
        self.run, self.writes = lowered.run, lowered.writes
        self.runs_ahead = isinstance(lowered.run, Part) and lowered.run.device.type != 'cpu'
        self.weights, self.inputs, self.numbers, self.shapes = weights, inputs, numbers, shapes
        self._watched: list[Any] = []

    def leave_with_weights(self, owner: '_Compiled', args: tuple[Any, ...]) -> None:
        """Has them let go when one of the weights goes, since nobody can call with all of these any more. Another tensor may then
        lie where that one lay."""
        gone = functools.partial(_let_go, weakref.ref(owner), weakref.ref(self))
        self._watched = [weakref.ref(args[place], gone) for place in self.weights.places]

    def takes(self, args: tuple[Any, ...]) -> bool:
        return self.shapes is None or self.shapes == _shapes(args, self.inputs)


def _let_go(owner: 'weakref.ref[_Compiled]', gone: 'weakref.ref[_Engines]', _: object) -> None:
    compiled, engines = owner(), gone()
    if compiled is not None and engines is not None:
        compiled.remove(engines)


class _Compiled:
    """A graph of Dynamo's as a function of its inputs. Weights are taken into engines, and looked at in each call: for others,
    as modules have that share their code, there are other engines, and for changed ones new engines."""

    def __init__(self, graph: GraphModule, examples: Sequence[Any], options: Options) -> None:
        self._graph, self._options = graph, options
        nodes = graph.graph.find_nodes(op='placeholder')
        self._values = [node.meta.get('example_value') for node in nodes]
        self._weights = [index for index, node in enumerate(nodes) if _is_weight(node, examples[index])]
        self._sizes = self._size_inputs()
        self._numbers = [index for index, value in enumerate(self._values)
                         if not isinstance(value, torch.Tensor) and index not in self._sizes]
        self._engines: list[_Engines] = []
        self._are_open = True
        self._warned = False
        self._told: set[str] = set()

    def _size_inputs(self) -> dict[int, tuple[int, int]]:
        """{number of an input that is the size of a tensor: (the tensor's number, axis)}."""
        places = {size.node.expr: (index, axis) for index, value in enumerate(self._values) if isinstance(value, torch.Tensor)
                  for axis, size in enumerate(value.shape) if isinstance(size, torch.SymInt)}
        return {index: places[value.node.expr] for index, value in enumerate(self._values)
                if isinstance(value, torch.SymInt) and value.node.expr in places}

    def __call__(self, *args: Any) -> Any:
        if torch.is_grad_enabled():
            with torch.no_grad():
                return self._call(args)
        return self._call(args)

    def _call(self, args: tuple[Any, ...]) -> Any:
        engines = self._known(args)
        if engines is not None and engines.runs_ahead:
            # Hundreds of versions take as long as a launch: they are looked at while a GPU computes, and a result of old weights is
            # dropped. For sizes that the engine does not take they are looked at first, so that none is built of old weights.
            with contextlib.suppress(OtherSizes):
                result = engines.run.as_built(*(args[index] for index in engines.inputs))
                if not engines.weights.changed(args):
                    return result
        engines = self.engine_for(args)
        try:
            return self._run(engines, args)
        except OtherSizes:  # of an open size torch.export has made a number, such as of the length of an LSTM's sequence
            return self._run(self._of_these_sizes(engines, args), args)

    def _run(self, engines: _Engines, args: Sequence[Any]) -> Any:
        tensors = [args[index] for index in engines.inputs]
        weights = [args[place] for place in engines.weights.places] if engines.writes else []
        if engines.run is None or engines.writes and share_memory(tensors, weights):
            return self._graph(*args)
        return engines.run(*tensors)

    def _known(self, args: tuple[Any, ...]) -> _Engines | None:
        """The engines for these tensors and numbers, whose weights may have been written since."""
        numbers = [exact(args[index]) for index in self._numbers]
        for engines in tuple(self._engines):  # other threads add and remove some
            if engines.numbers == numbers and engines.takes(args) and engines.weights.are_in(args):
                return engines
        return None

    def engine_for(self, args: tuple[Any, ...]) -> _Engines:
        """The engines for these weights and numbers, made where there are none. Raises Error."""
        engines = self._known(args)
        if engines is not None and not engines.weights.changed(args):
            return engines
        with compile_lock:
            while engines := self._known(args):
                changed = engines.weights.changed(args)
                if not changed:
                    return engines
                self.remove(engines)
                self._take_change(changed, args)
            return self._add(args, self._are_open)

    def _of_these_sizes(self, failed: _Engines, args: tuple[Any, ...]) -> _Engines:
        """Engines for the sizes of these arguments alone, which others do not take. Raises Error."""
        with compile_lock:
            engines = self._known(args)
            return engines if engines is not None and engines is not failed else self._add(args, are_open=False)

    def _add(self, args: tuple[Any, ...], are_open: bool) -> _Engines:
        """New engines for these weights and numbers, and for other sizes where those are open. Raises Error."""
        made = self._made(args, [exact(args[index]) for index in self._numbers], are_open)
        made.leave_with_weights(self, args)
        self._engines.insert(0, made)
        del self._engines[MOST_ENGINES:]
        return made

    def remove(self, engines: _Engines) -> None:
        """Called at any time, also from the midst of what is done to the list: so that is one step each."""
        with contextlib.suppress(ValueError):
            self._engines.remove(engines)

    def _take_change(self, changed: Sequence[int], args: tuple[Any, ...]) -> None:
        """Buffers that change become inputs; for other parameters engines are built anew."""
        buffers = [index for index in changed if not isinstance(args[index], torch.nn.Parameter)]
        self._weights = [index for index in self._weights if index not in buffers]
        if buffers:
            self._engines.clear()
        if len(buffers) < len(changed) and not self._warned:
            self._warned = True
            warnings.warn('lathe: parameters have been changed in place, and engines are built anew whenever they are',
                          stacklevel=2)

    def _leave_uncounted(self, args: tuple[Any, ...]) -> None:
        """Makes inputs of weights that PyTorch counts no writes of."""
        uncounted = [index for index in self._weights if args[index].is_inference()]
        self._weights = [index for index in self._weights if index not in uncounted]
        if uncounted:
            warnings.warn(f'lathe: {len(uncounted)} weights were made in torch.inference_mode(), where PyTorch does not note that they '
                          'are changed: they are inputs of engines, which takes longer; make the model in torch.no_grad()',
                          stacklevel=2)

    def _made(self, args: tuple[Any, ...], numbers: list[Any], are_open: bool) -> _Engines:
        self._leave_uncounted(args)
        inputs = [index for index, value in enumerate(args) if isinstance(value, torch.Tensor) and index not in self._weights]
        read = {index: _Read.of(args[index]) for index in self._weights}  # what is written while a build lasts is newer
        module = self._with_weights(args)
        with torch.inference_mode(False):
            examples = [args[index].detach() for index in inputs]  # which are no views, of whose bases torch.export makes conditions
        axes = tuple(open_axes(self._values[index]) if are_open else {} for index in inputs)
        try:
            with torch.inference_mode(False), torch.no_grad(), _onnx.quiet(), \
                    at_most(self._options.open_seconds) if any(axes) else contextlib.nullcontext():
                program = torch.export.export(module, tuple(examples), strict=False, dynamic_shapes=axes)
        except Overdue:
            tell_overdue(self._options)
            self._are_open = False
            return self._made(args, numbers, are_open=False)
        except Exception as error:  # whatever tracing a program may raise
            lowered = Lowered(None, [], [f'all of the graph, for torch.export cannot capture it: {formatted(error)}'])
        else:
            lowered = lower(program, examples, self._options)
        tell([text for text in lowered.stays if text not in self._told], self._options)
        self._told.update(lowered.stays)
        written = [int(name.removeprefix('weight')) for name in lowered.states]
        kept = [index for index in self._weights if index not in written]
        self._weights = kept
        places = [*written, *inputs]
        return _Engines(lowered, _Weights(args, {index: read[index] for index in kept}), places, numbers,
                        None if are_open else _shapes(args, places))

    def _with_weights(self, args: Sequence[Any]) -> GraphModule:
        """The graph as a module that has the weights and numbers, and takes tensors alone."""
        graph = copy.deepcopy(self._graph.graph)
        nodes = graph.find_nodes(op='placeholder')
        if nodes:
            graph.inserting_after(nodes[-1])
        for index, node in enumerate(nodes):
            if index in self._sizes:
                tensor, axis = self._sizes[index]
                value = graph.call_method('size', (nodes[tensor], axis))
            elif index in self._weights:
                value = graph.create_node('get_attr', f'weight{index}')
            elif not isinstance(args[index], torch.Tensor):
                value = args[index]
            else:
                continue
            for user in list(node.users):
                user.args = torch.fx.map_arg(user.args, lambda each: value if each is node else each)
                user.kwargs = torch.fx.map_arg(user.kwargs, lambda each: value if each is node else each)
        for index, node in enumerate(nodes):
            if not node.users and (index in self._weights or not isinstance(args[index], torch.Tensor)):
                graph.erase_node(node)
        with torch.inference_mode(False):  # not the weights themselves, so that nothing made of them keeps these alive
            weights = {f'weight{index}': args[index].detach() for index in self._weights}
        return GraphModule(dict(self._graph.named_modules()) | weights, graph)
