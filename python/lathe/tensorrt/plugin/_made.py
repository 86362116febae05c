# SPDX-License-Identifier: Apache-2.0
"""The plugin and the creator that are made of functions."""
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from lathe._tensorrt import (DataType, DimsExprs, DynamicPluginTensorDesc, IExprBuilder, IPluginResourceContext,
                             PluginCapabilityType, PluginTensorDesc, TensorFormat, TensorRTPhase)
from lathe.tensorrt._plugins import (IPluginCreatorV3One, IPluginV3, IPluginV3OneBuildV2, IPluginV3OneCore,
                                     IPluginV3OneRuntime, PluginField, PluginFieldCollection_)
from lathe.tensorrt.plugin._autotune import fits
from lathe.tensorrt.plugin._definition import Definition
from lathe.tensorrt.plugin._shapes import ShapeExpr, ShapeExprs
from lathe.tensorrt.plugin._tensors import SizeTensorDesc, Tensor, TensorDesc


class FunctionPlugin(IPluginV3, IPluginV3OneCore, IPluginV3OneBuildV2, IPluginV3OneRuntime):
    """A plugin whose methods call the functions of a definition."""

    def __init__(self, definition: Definition, attributes: Mapping[str, Any]) -> None:
        self.definition, self.attributes = definition, dict(attributes)
        self.plugin_name, self.plugin_version, self.plugin_namespace = definition.name, '1', definition.namespace
        self.num_outputs = definition.num_outputs
        self.fields = PluginFieldCollection_(definition.attributes[name].field(value) for name, value in attributes.items())
        self.input_types: list[DataType] = []
        self.aliases: list[int] = []
        self.tactic = 0
        self.valid_tactics: list[int] = []
        self.on_host = False

    def get_capability_interface(self, type: PluginCapabilityType) -> 'FunctionPlugin':
        return self

    def clone(self) -> 'FunctionPlugin':
        cloned = FunctionPlugin(self.definition, self.attributes)
        cloned.__dict__.update(self.__dict__)
        return cloned

    def _described(self, inputs: Sequence[TensorDesc]) -> list[TensorDesc]:
        found = self.definition.describe(*inputs, **self.attributes)
        outputs = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(outputs) != self.num_outputs or not all(isinstance(each, TensorDesc) for each in outputs):
            raise ValueError(f'{self.definition.describe.__name__}() returned {found!r}, where {self.num_outputs} TensorDesc '
                             'are wanted')
        return outputs

    def get_output_data_types(self, input_types: list[DataType]) -> list[DataType]:
        self.input_types = list(input_types)
        # Ranks are not known here, and types do not follow from them: the first rank that the function takes will do.
        problem = None
        for rank in (4, 3, 2, 1, 5, 6, 7, 8, 0):
            try:
                return [each.dtype for each in self._described([TensorDesc(ShapeExprs(rank), t) for t in input_types])]
            except (IndexError, ValueError) as error:
                problem = problem or error
        raise problem or AssertionError

    def get_output_shapes(self, inputs: list[DimsExprs], shape_inputs: list[DimsExprs],
                          expr_builder: IExprBuilder) -> list[DimsExprs]:
        given = [TensorDesc(ShapeExprs(len(sizes), map(ShapeExpr, sizes)), type)
                 for sizes, type in zip(inputs, self.input_types)]
        outputs = self._described(given)
        self.aliases = [next((i for i, each in enumerate(given) if each is output.get_aliased()), -1) for output in outputs]
        declared = [(size, expr_builder.declare_size_tensor(index, size.opt.evaluate(expr_builder),
                                                            size.upper_bound.evaluate(expr_builder)))
                    for index, size in enumerate(outputs) if isinstance(size, SizeTensorDesc)]
        return [each.shape_expr.evaluate(expr_builder, declared) for each in outputs]

    def get_aliased_input(self, output_index: int) -> int:
        return self.aliases[output_index]

    def _rows(self, tensors: Sequence[DynamicPluginTensorDesc], num_inputs: int) -> list[Any]:
        """Combinations of types and formats, and their tactics."""
        tune = self.definition.tune
        if tune is None:
            return [([(each.desc.type, TensorFormat.LINEAR) for each in tensors], [])]
        descs = [TensorDesc(ShapeExprs.from_tuple(list(each.desc.dims)), each.desc.type) for each in tensors]
        combinations = tune(*descs[:num_inputs], **self.definition.attributes_for(tune, self.attributes),
                            outputs=tuple(descs[num_inputs:]))
        return [row for combination in combinations for row in combination.rows(len(tensors))]

    def supports_format_combination(self, pos: int, in_out: list[DynamicPluginTensorDesc], num_inputs: int) -> bool:
        return any(fits(row, in_out[:pos + 1]) for row, _ in self._rows(in_out, num_inputs))

    def configure_plugin(self, input_desc: list[DynamicPluginTensorDesc],
                         output_desc: list[DynamicPluginTensorDesc]) -> None:
        tensors = input_desc + output_desc
        chosen = [tactics for row, tactics in self._rows(tensors, len(input_desc)) if fits(row, tensors)]
        self.valid_tactics = sorted({tactic for tactics in chosen for tactic in tactics})

    def get_valid_tactics(self) -> list[int]:
        return self.valid_tactics

    def set_tactic(self, tactic: int) -> None:
        self.tactic = tactic

    def on_shape_change(self, input_desc: list[PluginTensorDesc], output_desc: list[PluginTensorDesc]) -> None:
        pass

    def get_fields_to_serialize(self) -> PluginFieldCollection_:
        return self.fields

    def attach_to_context(self, resource_context: IPluginResourceContext) -> 'FunctionPlugin':
        attached = self.clone()
        attached.on_host = resource_context.runs_on_host
        return attached

    def enqueue(self, input_desc: list[PluginTensorDesc], output_desc: list[PluginTensorDesc], inputs: list[int],
                outputs: list[int], workspace: int, stream: int) -> None:
        implement = self.definition.implement
        if implement is None:
            raise NotImplementedError(f'{self.plugin_namespace}::{self.plugin_name} has no function that is decorated by impl()')
        given = [Tensor(desc, pointer, self.on_host) for desc, pointer in zip(input_desc, inputs)]
        results = tuple(Tensor(desc, pointer, self.on_host) for desc, pointer in zip(output_desc, outputs))
        chosen = {'tactic': self.tactic} if 'tactic' in inspect.signature(implement).parameters else {}
        implement(*given, **self.definition.attributes_for(implement, self.attributes), outputs=results, stream=stream, **chosen)


class FunctionPluginCreator(IPluginCreatorV3One):
    """Makes plugins of a definition."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.name, self.plugin_version, self.plugin_namespace = definition.name, '1', definition.namespace
        self.field_names = PluginFieldCollection_(PluginField(each.name, type=each.type)
                                                  for each in definition.attributes.values())

    def create_plugin(self, name: str, field_collection: PluginFieldCollection_, phase: TensorRTPhase) -> FunctionPlugin:
        known = self.definition.attributes
        values = {field.name: known[field.name].value(field) for field in field_collection if field.name in known}
        if missing := known.keys() - values.keys() - self._defaults():
            raise ValueError(f'{self.plugin_namespace}::{self.name} lacks attributes {sorted(missing)}')
        return FunctionPlugin(self.definition, values)

    def _defaults(self) -> set[str]:
        parameters = inspect.signature(self.definition.describe).parameters
        return {name for name, parameter in parameters.items() if parameter.default is not parameter.empty}
