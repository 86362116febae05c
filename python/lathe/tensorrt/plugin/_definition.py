# SPDX-License-Identifier: Apache-2.0
"""What the functions of a plugin say by their signatures, and attributes as fields of plugins."""
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lathe._deferred import Deferred
from lathe._tensorrt import PluginFieldType
from lathe.tensorrt._plugins import PluginField
from lathe.tensorrt.plugin._tensors import TensorDesc

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred('numpy')

RESERVED_NAMESPACES = {'', 'trt', 'tensorrt', 'std'}
RESERVED_ARGUMENTS = {'outputs', 'stream', 'tactic'}
_BUILT_IN = {int: PluginFieldType.INT64, float: PluginFieldType.FLOAT64, bool: PluginFieldType.INT8,
             str: PluginFieldType.CHAR, bytes: PluginFieldType.CHAR}
_BY_STRING = {'i1': PluginFieldType.INT8, 'i2': PluginFieldType.INT16, 'i4': PluginFieldType.INT32, 'i8': PluginFieldType.INT64,
              'f2': PluginFieldType.FLOAT16, 'f4': PluginFieldType.FLOAT32, 'f8': PluginFieldType.FLOAT64}


class Attribute:
    """A value that is fixed when the layer is added: a number, a truth, text, bytes or a flat array of NumPy."""

    def __init__(self, name: str, annotation: Any) -> None:
        self.name = name
        self.dtype: np.dtype[Any] | None = None
        if annotation in _BUILT_IN:
            self.kind, self.type = annotation, _BUILT_IN[annotation]
            return
        arguments = typing.get_args(annotation)
        if typing.get_origin(annotation) is np.ndarray and typing.get_args(arguments[1]):
            self.kind, self.dtype = np.ndarray, np.dtype(typing.get_args(arguments[1])[0])
            if self.dtype.isnative and self.dtype.str[1:] in _BY_STRING:
                self.type = _BY_STRING[self.dtype.str[1:]]
                return
        raise ValueError(f'attribute {name} is annotated {annotation!r}: int, float, bool, str, bytes and '
                         'numpy.typing.NDArray of a type of NumPy can be stored')

    def field(self, value: Any) -> PluginField:
        """Raises ValueError where the value is not of the attribute's type."""
        if self.dtype is not None:
            if not isinstance(value, np.ndarray) or value.dtype != self.dtype or value.ndim != 1:
                raise ValueError(f'attribute {self.name} takes a flat array of {self.dtype}, got {value!r}')
            return PluginField(self.name, value, self.type)
        if self.kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not self.kind:
            raise ValueError(f'attribute {self.name} is of type {self.kind.__name__}, got {value!r}')
        if self.kind in (str, bytes):
            return PluginField(self.name, value.encode() if self.kind is str else value, self.type)
        return PluginField(self.name, np.array([value], {int: np.int64, float: np.float64, bool: np.int8}[self.kind]), self.type)

    def value(self, field: PluginField) -> Any:
        if self.kind is np.ndarray:
            return field.data
        if self.kind in (str, bytes):
            data = field.data.tobytes()
            return data.decode() if self.kind is str else data
        if field.size != 1:
            raise ValueError(f'attribute {self.name} is one {self.kind.__name__}, and its field has {field.size} elements')
        return self.kind(field.data[0])


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(f'an annotation of {function.__name__}() is unknown: {error}') from None


def _outputs_of(annotation: Any) -> int:
    if isinstance(annotation, type) and issubclass(annotation, TensorDesc):
        return 1
    members = typing.get_args(annotation)
    if typing.get_origin(annotation) is tuple and members and all(
            isinstance(each, type) and issubclass(each, TensorDesc) for each in members):
        return len(members)
    raise ValueError(f'the function returns {annotation!r}; TensorDesc, or a tuple with one for each output, is wanted')


class Definition:
    """The functions of a plugin."""

    def __init__(self, plugin_id: str, describe: Callable[..., Any]) -> None:
        self.namespace, separator, self.name = plugin_id.partition('::')
        if not separator or not self.namespace.isidentifier() or not self.name.isidentifier():
            raise ValueError(f"'{plugin_id}' is not of the form namespace::name")
        if self.namespace in RESERVED_NAMESPACES:
            raise ValueError(f"the namespace '{self.namespace}' is reserved")
        self.describe = describe
        self.implement: Callable[..., Any] | None = None
        self.tune: Callable[..., Any] | None = None
        self.inputs: list[str] = []
        self.attributes: dict[str, Attribute] = {}
        hints = _hints(describe)
        self.num_outputs = _outputs_of(hints.get('return'))
        for name, parameter in inspect.signature(describe).parameters.items():
            self._add_argument(name, parameter, hints)
        if not self.inputs:
            raise ValueError(f'{describe.__name__}() has no argument annotated TensorDesc: plugins have inputs')

    def _add_argument(self, name: str, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> None:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValueError(f'argument {name} has no name that can be given')
        if name not in hints:
            raise ValueError(f'argument {name} has no annotation: TensorDesc for inputs, else the type of the attribute')
        if hints[name] is TensorDesc:
            if self.attributes:
                raise ValueError(f'input {name} follows an attribute: inputs come first')
            self.inputs.append(name)
        elif name in RESERVED_ARGUMENTS:
            raise ValueError(f"no attribute can be called '{name}'")
        else:
            self.attributes[name] = Attribute(name, hints[name])

    def arguments_of(self, function: Callable[..., Any], required: set[str], optional: set[str]) -> None:
        """Checks that a function takes the inputs, attributes that exist, and what else it is given. Raises ValueError."""
        names = list(inspect.signature(function).parameters)
        if names[:len(self.inputs)] != self.inputs:
            raise ValueError(f'{function.__name__}() begins with the inputs {self.inputs}, not {names[:len(self.inputs)]}')
        rest = set(names[len(self.inputs):])
        if missing := required - rest:
            raise ValueError(f'{function.__name__}() lacks arguments {sorted(missing)}')
        if unknown := rest - required - optional - self.attributes.keys():
            raise ValueError(f'{function.__name__}() has arguments {sorted(unknown)}, which are no attributes')

    def attributes_for(self, function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the attributes that a function takes."""
        names = inspect.signature(function).parameters
        return {name: value for name, value in values.items() if name in names}
