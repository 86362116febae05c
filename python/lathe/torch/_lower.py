# SPDX-License-Identifier: Apache-2.0
"""Exported programs as engines: the whole program where that is possible, else the parts that can be, and PyTorch computes the
rest."""
import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import ConstantArgument, SymIntArgument
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.utils._sympy.value_ranges import bound_sympy

from lathe.engine import Error
from lathe.torch import _graph, _onnx, _plans
from lathe.torch._options import Options
from lathe.torch._part import Part

GROWTH = 4  # open sizes may become so many times as large before an engine is built for larger ones
DEVICES = ('cpu', 'cuda')  # of tensors
RETRIES = 8  # of splitting a graph, each without one operator more


Make = Callable[[Any, ExportedProgram, Sequence[torch.Tensor], Options, bool], Part]


class Lowered(NamedTuple):
    """run: takes the buffers that the program writes, then its tensors, and gives its outputs; None where nothing became an
    engine. states: the names of those buffers. stays: what stays in PyTorch, where and why. writes: whether it writes into
    buffers or inputs."""

    run: Any
    states: list[str]
    stays: list[str]
    writes: bool = False


def lower(program: ExportedProgram, examples: Sequence[torch.Tensor], options: Options, make: Make | None = None) -> Lowered:
    """Engines of a program that was exported with these tensors. make: what makes a Part of an ONNX program; unless given it is
    built. Raises Error where the option `device` is for other tensors than these."""
    make = make or built
    for device in {example.device for example in examples}:
        if options.device is not None and device.type in DEVICES:
            target_of(device, options)
    flat, stays = None, []
    try:
        onnx = _onnx.to_onnx(program, options.refit)
        flat = onnx.exported_program
        flat.range_constraints.update(program.range_constraints)
        if _graph.is_plain(flat):
            return Lowered(make(onnx, flat, examples, options, False), [], [])
    except _onnx.Refused as refused:
        stays = [refused.described()]
    except Error as error:
        stays = [str(error)]
    try:
        flat = flat or _onnx.decomposed(program)
    except Exception as error:  # whatever taking a program apart may raise
        return Lowered(None, [], [*stays, f'all of the graph, for PyTorch cannot take it apart: {_graph.formatted(error)}'])
    graph, states = _graph.graph_of(flat, program)
    lowered = _split(graph, states, stays, program.range_constraints, options, make)
    signature = flat.graph_signature
    return lowered._replace(writes=bool(signature.buffers_to_mutate or signature.user_inputs_to_mutate))


def share_memory(tensors: Sequence[torch.Tensor], weights: Sequence[torch.Tensor] = ()) -> bool:
    """Whether one of the tensors is of the memory of another one, or of a weight."""
    places, others = ([tensor.untyped_storage().data_ptr() for tensor in each if isinstance(tensor, torch.Tensor) and tensor.numel()]
                      for each in (tensors, weights))
    return len(set(places)) < len(places) or not set(places).isdisjoint(others)


def device_of(tensors: Sequence[torch.Tensor]) -> torch.device:
    """The device of all tensors. Raises Error where there are several, or engines cannot be for it."""
    devices = {tensor.device for tensor in tensors} or {torch.device('cpu')}
    if len(devices) > 1:
        raise Error(f'tensors are on several devices: {", ".join(sorted(map(str, devices)))}')
    device, = devices
    if device.type not in DEVICES:
        raise Error(f'engines are for tensors on the CPU and on GPUs of CUDA, and these are on {device}')
    return device


def target_of(device: torch.device, options: Options) -> str:
    """What the engine is built for. Raises Error where the option says something that cannot read these tensors."""
    target = options.device or (str(device) if device.type == 'cuda' else 'cpu')
    is_other_gpu = target.startswith('cuda:') and device.index is not None and target != str(device)
    if target.startswith('cpu') != (device.type == 'cpu') or is_other_gpu:
        raise Error(f'device is one for tensors on {device}, got {target!r}')
    return target


def _sizes(size: Any, example: int, program: ExportedProgram, is_whole: bool) -> tuple[int, int, int]:
    if not isinstance(size, torch.SymInt):
        return size, size, size
    bounds = bound_sympy(size.node.expr, program.range_constraints)
    highest, first = _highest(bounds), GROWTH * example
    high = first if highest is None else highest if is_whole else min(highest, first)
    return min(int(bounds.lower), example), example, max(high, example)


def _admits(size: Any, given: int, program: ExportedProgram) -> bool:
    if not isinstance(size, torch.SymInt):
        return bool(size == given)
    bounds = bound_sympy(size.node.expr, program.range_constraints)
    return bool(bounds.lower <= given <= bounds.upper)


def _ranges(names: Sequence[str], nodes: Sequence[Node], shapes: Sequence[Sequence[int]],
            program: ExportedProgram, is_whole: bool) -> dict[str, _plans.Range]:
    found: dict[str, _plans.Range] = {}
    for name, node, example in zip(names, nodes, shapes, strict=True):
        sizes = node.meta['val'].shape
        if any(isinstance(size, torch.SymInt) for size in sizes):
            low, best, high = zip(*(_sizes(size, given, program, is_whole) for size, given in zip(sizes, example)))
            found[name] = (low, best, high)
    return found


def built(onnx: Any, flat: ExportedProgram, examples: Sequence[torch.Tensor], options: Options, single: bool,
          is_whole: bool = False) -> Part:
    """An engine of an ONNX program. is_whole: whether it is for all sizes that the program admits; else for some times as large as
    the examples, and others when larger ones come. Raises Error."""
    made = [node.meta['val'] for node in _graph.outputs_of(flat.graph) if isinstance(node, Node)]
    tensors = [*examples, *(value for value in made if isinstance(value, torch.Tensor))]
    unknown = sorted({str(tensor.dtype) for tensor in tensors if tensor.is_complex()})
    if unknown:
        raise Error(f'engines neither take nor give tensors of {", ".join(unknown)}')
    device = device_of(tensors)
    target = target_of(device, options)
    inputs = [value.name for value in onnx.model.graph.inputs]
    outputs = [value.name for value in onnx.model.graph.outputs]
    nodes = _graph.tensors_of(flat)
    flat.example_inputs = None  # would be held as long as the engine can be built anew

    def build(shapes: Sequence[Sequence[int]]) -> bytes:
        with _plans.saved(onnx) as path:
            return _plans.plan_of(path, _ranges(inputs, nodes, shapes, flat, is_whole), target, options)
    results, types = list[Any](), list[torch.dtype]()
    for spec, node in zip(flat.graph_signature.output_specs, _graph.outputs_of(flat.graph), strict=True):
        if isinstance(spec.arg, ConstantArgument):
            results.append(('constant', spec.arg.value))
            continue
        is_size = isinstance(spec.arg, SymIntArgument)
        results.append(('int', len(types)) if is_size else len(types))
        types.append(torch.int64 if is_size else node.meta['val'].dtype)

    def rebuild(shapes: Sequence[Sequence[int]]) -> bytes | None:
        admitted = all(_admits(size, given, flat) for node, shape in zip(nodes, shapes)
                       for size, given in zip(node.meta['val'].shape, shape))
        return build(shapes) if admitted else None
    plan = build([tuple(example.shape) for example in examples])
    ports = [(name, node.meta['val'].dtype) for name, node in zip(inputs, nodes)]
    return Part(plan, ports, list(zip(outputs, types, strict=True)), results, device, _plans.threads_of(options), single,
                rebuild if any(isinstance(size, torch.SymInt) for node in nodes for size in node.meta['val'].shape) else None)


class _Support(OperatorSupportBase):
    """Which nodes may go into engines; notes why others may not."""

    def __init__(self, refused: dict[str, str]) -> None:
        self.refused = refused
        self.reasons: dict[Node, str] = {}

    def is_node_supported(self, submodules: Any, node: Node) -> bool:
        if node.op != 'call_function' or 'stays' in node.meta:
            return False
        if node.target is operator.getitem:
            source = node.args[0]
            return isinstance(source, Node) and self.is_node_supported(submodules, source)
        why = self.refused.get(_graph.op_name(node))
        why = why or _graph.why_not_a_function(node) or None
        if why is None and not _onnx.has_rule(node):
            why = 'the ONNX exporter has no rule for it'
        if why is not None:
            self.reasons[node] = why
        return why is None


def _split(graph: GraphModule, states: list[str], stays: list[str], constraints: Any, options: Options,
           make: Make) -> Lowered:
    refused: dict[str, str] = {}
    for _ in range(RETRIES):
        support = _Support(refused)
        fused = CapabilityBasedPartitioner(GraphModule(graph, copy.deepcopy(graph.graph)), support,
                                           allows_single_node_partition=True).partition_and_fuse()
        _graph.put_in_order(fused.graph)
        reasons = [_graph.described(node, why) for node, why in support.reasons.items()]
        try:
            parts, failures = _replace(fused, constraints, options, make)
        except _onnx.Refused as problem:
            if not problem.op or problem.op in refused:
                return Lowered(None, states, [*reasons, problem.described()])
            refused[problem.op] = str(problem)
            continue
        stays = reasons + failures or stays
        return Lowered(_tidied(fused) if parts else None, states, stays if stays or parts else [])
    return Lowered(None, states, [f'{op}: {why}' for op, why in refused.items()])


def _replace(fused: GraphModule, constraints: Any, options: Options, make: Make) -> tuple[int, list[str]]:
    """Puts engines in place of submodules; returns how many, and why others stay. Raises Refused."""
    parts, failures = 0, []
    for call in fused.graph.find_nodes(op='call_module'):
        nodes = fused.get_submodule(str(call.target)).graph.nodes
        computing = [node for node in nodes if node.op == 'call_function' and not _graph.is_view(node) and
                     not isinstance(node.meta.get('val'), torch.SymInt)]
        if not computing:
            continue  # views cost nothing in PyTorch
        try:
            _replace_one(fused, call, constraints, options, make)
            parts += 1
        except Error as error:
            more = f' and {len(computing) - 1} more' if len(computing) > 1 else ''
            failures.append(_graph.described(computing[0], f'it{more} stay in PyTorch, for {error}'))
    return parts, failures


def _replace_one(fused: GraphModule, call: Node, constraints: Any, options: Options, make: Make) -> None:
    body = fused.get_submodule(str(call.target))
    assert isinstance(body, GraphModule)
    given = list(zip(body.graph.find_nodes(op='placeholder'), call.args))
    crossing = [node for node, _ in given] + [node for node in body.graph.output_node().all_input_nodes]
    if any(not isinstance(node.meta.get('val'), torch.Tensor) for node in crossing):
        raise Error('sizes of tensors pass between it and what stays in PyTorch')
    for node, source in given:
        if isinstance(source, Node) and source.op == 'get_attr':
            setattr(body, str(source.target), getattr(fused, str(source.target)))
            with body.graph.inserting_before(node):
                weight = body.graph.create_node('get_attr', str(source.target))
            weight.meta = node.meta
            node.replace_all_uses_with(weight)
            body.graph.erase_node(node)
    body.recompile()
    call.args = tuple(source for _, source in given if not (isinstance(source, Node) and source.op == 'get_attr'))
    values = [node.meta['val'] for node in body.graph.find_nodes(op='placeholder')]
    examples = [torch.zeros([int(size.node.hint) if isinstance(size, torch.SymInt) else size for size in value.shape],
                            dtype=value.dtype, device=value.device) for value in values]
    with _onnx.quiet():
        program = torch.export.export(body, tuple(examples), strict=False,
                                      dynamic_shapes=tuple(open_axes(value, constraints) for value in values))
    onnx = _onnx.to_onnx(program, options.refit)
    set_ranges(onnx.exported_program, [_bounds(value, constraints) for value in values])
    part = make(onnx, onnx.exported_program, examples, options, isinstance(body.graph.output_node().args[0], Node))
    setattr(fused, str(call.target), part)


def open_axes(value: torch.Tensor, constraints: Any = None) -> dict[int, Any]:
    """What torch.export is told of a tensor's sizes that are symbols; constraints: ranges of those, unless they are their own."""
    return {axis: Dim.AUTO(min=int(bounds.lower), max=_highest(bounds))
            for axis, bounds in _bounds(value, constraints).items()}


def _bounds(value: torch.Tensor, constraints: Any) -> dict[int, Any]:
    return {axis: size.node.shape_env.bound_sympy(size.node.expr) if constraints is None else
            bound_sympy(size.node.expr, constraints)
            for axis, size in enumerate(value.shape) if isinstance(size, torch.SymInt)}


def _highest(bounds: Any) -> int | None:
    return int(bounds.upper) if bounds.upper.is_number and bounds.upper < 1 << 31 else None


def set_ranges(program: ExportedProgram, wanted: Sequence[Mapping[int, Any]]) -> None:
    """Gives sizes of the program's tensors these ranges, {axis: range} for each: torch.export leaves sizes of 1 out, since
    it would take them for constants, and the graph holds for them all the same."""
    for node, axes in zip(_graph.tensors_of(program), wanted, strict=True):
        for axis, bounds in axes.items():
            size = node.meta['val'].shape[axis]
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                program.range_constraints[size.node.expr] = bounds


def _tidied(fused: GraphModule) -> GraphModule:
    """Without the weights that are in engines now."""
    fused.graph.eliminate_dead_code()
    used = {str(node.target) for node in fused.graph.find_nodes(op='get_attr')}
    for name in [*dict(fused.named_parameters(recurse=False)), *dict(fused.named_buffers(recurse=False)), *vars(fused)]:
        if name.startswith('weight') and name not in used:
            delattr(fused, name)
    fused.graph.lint()
    fused.recompile()
    return fused
