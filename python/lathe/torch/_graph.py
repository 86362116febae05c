# SPDX-License-Identifier: Apache-2.0
"""Exported programs as graphs of torch.fx whose weights are attributes, and what must be known of their nodes."""
import operator
import traceback
from collections.abc import Iterator
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.fx import Graph, GraphModule, Node

from lathe.engine import Error

# They look at values while a program is exported, and compute nothing.
CHECKS = {'aten._assert_async.msg', 'aten._assert_async.default', 'aten._assert_scalar.default',
          'aten._assert_tensor_metadata.default', 'aten.sym_constrain_range.default',
          'aten.sym_constrain_range_for_size.default'}
# Arguments that say whether an operator draws random numbers or takes statistics.
SWITCHES = ('train', 'training', 'dropout_p')


def op_name(node: Node) -> str:
    target = node.target
    return str(target) if isinstance(target, (OpOverload, str)) else getattr(target, '__name__', str(target))


def is_view(node: Node) -> bool:
    """Whether the result may share its memory with the first argument."""
    if node.op != 'call_function':
        return False
    if node.target is operator.getitem:
        return isinstance(node.args[0], Node) and is_view(node.args[0])
    returns = node.target._schema.returns if isinstance(node.target, OpOverload) else []
    return any(each.alias_info is not None and not each.alias_info.is_write for each in returns)


def why_not_a_function(node: Node) -> str:
    """Why an operator cannot be in an engine though it has a rule: '' where it can."""
    if not isinstance(node.target, OpOverload):
        return ''
    switches = [node.args[index] if index < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
                for index, argument in enumerate(node.target._schema.arguments) if argument.name in SWITCHES]
    if torch.Tag.nondeterministic_seeded in node.target.tags and (any(switches) or not switches):
        return "it draws numbers from PyTorch's generator"
    return 'it is in training mode, of which the ONNX exporter takes no notice' if any(switches) else ''


def views_behind(node: Node) -> Iterator[Node]:
    """The views that lead to this value from what is none, the last one first."""
    while is_view(node):
        yield node
        node = node.all_input_nodes[0]


def root_of(node: Node) -> Node:
    """The value whose memory this one shows."""
    for view in views_behind(node):
        node = view.all_input_nodes[0]
    return node


def origin_of(node: Node) -> Node:
    """The value whose memory this one shows in a program that is not functional."""
    while is_view(node) or isinstance(node.target, OpOverload) and any(
            each.alias_info is not None and each.alias_info.is_write for each in node.target._schema.returns):
        node = node.all_input_nodes[0]
    return node


def where(node: Node) -> str:
    """The line of the program that the node is from."""
    lines = [line.strip() for line in str(node.meta.get('stack_trace') or '').splitlines() if line.strip().startswith('File ')]
    return lines[-1] if lines else ' '.join(str(path) for path, _ in (node.meta.get('nn_module_stack') or {}).values()) or node.name


def outputs_of(graph: Graph) -> list[Any]:
    return list(graph.output_node().args[0])


def is_plain(program: ExportedProgram) -> bool:
    """Whether a functional program is a function of its inputs: nothing is written, no output shares memory with an input, a
    weight or another output, and no operator is random or in training mode."""
    kinds = {spec.kind for spec in program.graph_signature.output_specs}
    roots = [root_of(node) for node in outputs_of(program.graph) if isinstance(node, Node)]
    return kinds <= {OutputKind.USER_OUTPUT} and len(set(roots)) == len(roots) and \
        not any(root.op == 'placeholder' for root in roots) and not any(map(why_not_a_function, program.graph.nodes))


def tensors_of(program: ExportedProgram) -> list[Node]:
    """The placeholders of the inputs that are tensors."""
    named = {spec.arg.name for spec in program.graph_signature.input_specs
             if spec.kind == InputKind.USER_INPUT and not isinstance(spec.arg, ConstantArgument)}
    return [node for node in program.graph.find_nodes(op='placeholder') if node.name in named]


def graph_of(program: ExportedProgram, written: ExportedProgram) -> tuple[GraphModule, list[str]]:
    """A functional program as a graph whose weights are attributes. Its inputs are the buffers that it writes, whose names are
    returned, then the program's tensors; its last nodes write back what the program writes. written: the program as it was, which
    says what outputs share their memory with. Raises Error."""
    signature = program.graph_signature
    graph, mapped = Graph(), dict[Node, Node]()
    outputs = graph.graph_copy(program.graph, mapped)
    placeholders = {node.name: mapped[node] for node in program.graph.find_nodes(op='placeholder')}
    weights, states = dict[str, torch.Tensor](), list[str]()
    # Not by buffers_to_mutate, which knows one buffer for each value.
    written_buffers = {spec.target for spec in signature.output_specs if spec.kind == OutputKind.BUFFER_MUTATION}
    for spec in signature.input_specs:
        node = placeholders[spec.arg.name]
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            if spec.target in written_buffers:
                states.append(spec.target)
                continue
            found = program.state_dict.get(spec.target)
            weights[f'weight{len(weights)}'] = program.constants[spec.target] if found is None else found
            with graph.inserting_before(node):
                weight = graph.create_node('get_attr', f'weight{len(weights) - 1}')
            weight.meta = node.meta
            node.replace_all_uses_with(weight)
            placeholders[spec.arg.name] = weight
            outputs = torch.fx.map_arg(outputs, lambda each: weight if each is node else each)
            graph.erase_node(node)
        elif spec.kind != InputKind.USER_INPUT:
            raise Error(f'an input of kind {spec.kind.name} has no place in an engine')
        elif isinstance(spec.arg, ConstantArgument):
            graph.erase_node(node)
    graph.output(outputs)
    for node in list(graph.nodes):
        if op_name(node) in CHECKS:
            graph.erase_node(node)
    module = GraphModule(dict(program.graph_module.named_modules()) | weights, graph)
    _end(module, program, placeholders, _origins(written))
    graph.eliminate_dead_code()
    return module, states


def _origins(program: ExportedProgram) -> list[Node | None]:
    """For each output that the user gets the value whose memory it shows; None for what is no tensor."""
    return [origin_of(value) if isinstance(value, Node) else None
            for spec, value in zip(program.graph_signature.output_specs, outputs_of(program.graph)) if spec.kind == OutputKind.USER_OUTPUT]


def _end(module: GraphModule, program: ExportedProgram, placeholders: dict[str, Node], origins: list[Node | None]) -> None:
    """Gives the graph its outputs: what is written goes back into its place, and views are computed anew of memory that is the
    program's, so that they share it. What shows such memory and shall not is copied before anything is written."""
    graph, signature = module.graph, program.graph_signature
    inputs_of = {name: input for input, name in signature.inputs_to_buffers.items()}
    last, writes, outputs = graph.output_node(), dict[str, Node](), []
    computed = len(graph.nodes)
    graph.inserting_before(last)
    for spec, value in zip(signature.output_specs, outputs_of(graph)):
        if spec.kind == OutputKind.USER_OUTPUT:
            outputs.append(value)
        elif spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION):
            writes[inputs_of[spec.target] if spec.kind == OutputKind.BUFFER_MUTATION else spec.target] = value
        else:
            raise Error(f'an output of kind {spec.kind.name} has no place in an engine')
    owners = dict[Node, Node]()
    for index, (value, origin) in enumerate(zip(outputs, origins, strict=True)):
        if origin is not None and origin.op != 'placeholder' and isinstance(value.meta.get('val'), torch.Tensor) and \
                (_is_of_program(value) or owners.setdefault(root_of(value), origin) is not origin):
            outputs[index] = _cloned(graph, value)
    read = {name: _cloned(graph, value) if _is_of_program(value) else value for name, value in writes.items()}
    places = {}
    for name, value in read.items():
        copy = graph.call_function(torch.ops.aten.copy_.default, (placeholders[name], value))
        copy.meta = {'val': placeholders[name].meta['val']}
        places[name] = (writes[name], copy)
    shared = _shared(outputs)
    shown = [_shown(graph, value, places.get(origin.name) if origin is not None else None, shared)
             for value, origin in zip(outputs, origins)]
    last.args = (tuple(shown),)
    for number, node in enumerate(list(graph.nodes)[computed - 1:-1]):
        node.meta['stays'] = number


def _is_of_program(value: Node) -> bool:
    """Whether it shows memory of an input or of a weight."""
    return root_of(value).op in ('placeholder', 'get_attr')


def _cloned(graph: Graph, value: Node) -> Node:
    clone = graph.call_function(torch.ops.aten.clone.default, (value,))
    clone.meta = dict(value.meta)
    return clone


def put_in_order(graph: Graph) -> None:
    """What writes stays behind all that reads: a graph that was sorted by what is computed of what may have lost that."""
    last = graph.output_node()
    for node in sorted((node for node in graph.nodes if 'stays' in node.meta), key=lambda node: int(node.meta['stays'])):
        last.prepend(node)


def _shared(outputs: list[Any]) -> set[Node]:
    """Values that several outputs show."""
    roots = [root_of(each) for each in outputs if isinstance(each, Node)]
    return {root for root in roots if roots.count(root) > 1}


def _shown(graph: Graph, value: Any, place: tuple[Node, Node] | None, shared: set[Node]) -> Any:
    """The output, of the memory that it shares. place: what is written there, and the write."""
    if not isinstance(value, Node):
        return value
    before, after = place or (None, None)
    views, node = [], value
    while node is not before and is_view(node):
        views.append(node)
        node = node.all_input_nodes[0]
    if node is not before:
        if node not in shared and node.op not in ('placeholder', 'get_attr'):
            return value
        after = node
    before = node
    for view in reversed(views):
        copied = graph.node_copy(view, lambda each: after if each is before else each)  # noqa: B023
        copied.meta = dict(view.meta)
        before, after = view, copied
    return after


def described(node: Node, why: str) -> str:
    return f'{op_name(node)} at {where(node)}: {why}'


def formatted(error: BaseException) -> str:
    """An exception in one line."""
    lines = ''.join(traceback.format_exception_only(error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__
