# SPDX-License-Identifier: Apache-2.0
"""Plugins that are functions with decorators.

    @register('examples::scale')
    def scale(x: TensorDesc, factor: float) -> TensorDesc:
        return x.like()

    @impl('examples::scale')
    def scale_impl(x: Tensor, factor: float, outputs: tuple[Tensor], stream: int) -> None:
        np.asarray(outputs[0])[:] = np.asarray(x) * factor

    layer = network.add_plugin(op.examples.scale(x, factor=2.0))
"""
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from lathe._tensorrt import ITensor, Logger, get_plugin_registry
from lathe.tensorrt._plugins import IPluginV3
from lathe.tensorrt.plugin._autotune import AutoTuneCombination
from lathe.tensorrt.plugin._definition import Definition
from lathe.tensorrt.plugin._made import FunctionPlugin, FunctionPluginCreator
from lathe.tensorrt.plugin._shapes import ShapeExpr, ShapeExprs, cdiv
from lathe.tensorrt.plugin._shapes import larger as max
from lathe.tensorrt.plugin._shapes import smaller as min
from lathe.tensorrt.plugin._tensors import SizeTensorDesc, Tensor, TensorDesc, from_shape_expr, size_tensor

__all__ = ['AutoTuneCombination', 'PluginDef', 'ShapeExpr', 'ShapeExprs', 'SizeTensorDesc', 'Tensor', 'TensorDesc',
           'aot_impl', 'autotune', 'cdiv', 'from_shape_expr', 'impl', 'logger', 'max', 'min', 'op', 'register', 'size_tensor']

logger = Logger()
Function = TypeVar('Function', bound=Callable[..., Any])


class PluginDef:
    """A registered plugin. Called with tensors of a network and attributes, it gives what network.add_plugin() takes."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.creator: FunctionPluginCreator | None = None

    def register_creator(self) -> None:
        """Makes the plugin known to the registry of the process. Raises ValueError where there is one of its name."""
        if self.creator is None:
            creator = FunctionPluginCreator(self.definition)
            if not get_plugin_registry().register_creator(creator, self.definition.namespace):
                raise ValueError(f"the registry has a plugin '{self.definition.name}' of version 1 in namespace "
                                 f"'{self.definition.namespace}' already")
            self.creator = creator

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[list[ITensor], list[ITensor], IPluginV3]:
        """Raises ValueError for missing inputs and attributes, and for others than the function declares."""
        try:
            bound = inspect.signature(self.definition.describe).bind(*args, **kwargs)
        except TypeError as error:
            raise ValueError(f'{self.definition.namespace}::{self.definition.name}: {error}') from None
        bound.apply_defaults()
        inputs = [bound.arguments.pop(name) for name in self.definition.inputs]
        for name, each in zip(self.definition.inputs, inputs):
            if not isinstance(each, ITensor):
                raise ValueError(f'input {name} is a tensor of a network, got {each!r}')
        self.register_creator()
        return inputs, [], FunctionPlugin(self.definition, bound.arguments)


class _Namespace:
    def __init__(self, name: str) -> None:
        self._name = name
        self._plugins: dict[str, PluginDef] = {}

    def __getattr__(self, name: str) -> PluginDef:
        if name in self._plugins:
            return self._plugins[name]
        raise AttributeError(f"no plugin '{self._name}::{name}' is registered")


class _Op:
    """Registered plugins: op.namespace.name."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}

    def __getattr__(self, name: str) -> _Namespace:
        if name in self._namespaces:
            return self._namespaces[name]
        raise AttributeError(f"no plugin of namespace '{name}' is registered")

    def _add(self, plugin: PluginDef) -> None:
        definition = plugin.definition
        space = self._namespaces.setdefault(definition.namespace, _Namespace(definition.namespace))
        if definition.name in space._plugins:
            raise ValueError(f"'{definition.namespace}::{definition.name}' is registered already")
        space._plugins[definition.name] = plugin

    def _find(self, plugin_id: str) -> Definition:
        namespace, _, name = plugin_id.partition('::')
        space = self._namespaces.get(namespace)
        if space is None or name not in space._plugins:
            raise ValueError(f"'{plugin_id}' is not registered: decorate the function that describes its outputs first")
        return space._plugins[name].definition


op = _Op()


def register(plugin_id: str, lazy_register: bool = False) -> Callable[[Callable[..., Any]], PluginDef]:
    """Decorates the function that describes the outputs of plugin 'namespace::name'. Raises ValueError for wrong signatures.

    Its arguments annotated TensorDesc are inputs; others are attributes. lazy_register: the creator, which loads engines and imports
    models, is registered when the first layer is added, not at once.
    """
    def decorate(function: Callable[..., Any]) -> PluginDef:
        plugin = PluginDef(Definition(plugin_id, function))
        op._add(plugin)
        if not lazy_register:
            plugin.register_creator()
        return plugin
    return decorate


def impl(plugin_id: str) -> Callable[[Function], Function]:
    """Decorates the function that computes: inputs, attributes that it needs, `outputs`, `stream`, and `tactic` where it has some.

    It is given Tensor objects; on the CPU device its work is done when it returns. Raises ValueError for wrong signatures.
    """
    def decorate(function: Function) -> Function:
        definition = op._find(plugin_id)
        definition.arguments_of(function, required={'outputs', 'stream'}, optional={'tactic'})
        definition.implement = function
        return function
    return decorate


def autotune(plugin_id: str) -> Callable[[Function], Function]:
    """Decorates the function that lists AutoTuneCombination: inputs, attributes that it needs, `outputs`.

    Without one, a plugin takes the types that the network has, in row-major format, and has one tactic.
    """
    def decorate(function: Function) -> Function:
        definition = op._find(plugin_id)
        definition.arguments_of(function, required={'outputs'}, optional=set())
        definition.tune = function
        return function
    return decorate


def aot_impl(plugin_id: str) -> Callable[[Function], Function]:
    """Has no effect, and warns: kernels that are compiled when the engine is built are not taken."""
    def decorate(function: Function) -> Function:
        definition = op._find(plugin_id)
        warnings.warn(f"aot_impl() of '{definition.namespace}::{definition.name}' has no effect: engines call the function that "
                      'is decorated by impl()', stacklevel=2)
        return function
    return decorate
