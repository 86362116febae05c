# SPDX-License-Identifier: Apache-2.0
"""Plans of ONNX programs, from the folder of engines that were built before or from a build."""
import contextlib
import hashlib
import json
import os
import pathlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from lathe import _tensorrt
from lathe.engine import Error, Reports
from lathe.torch._options import Options

# A protocol buffer holds 2 GiB; weights beyond this lie beside the model.
INLINE_BYTES = 1 << 30
CACHE_BYTES = 20 << 30

Range = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def threads_of(options: Options) -> int:
    return options.threads or torch.get_num_threads()


def _cache_folder(options: Options) -> pathlib.Path | None:
    if options.cache is not None:
        return pathlib.Path(options.cache) if options.cache else None
    named = os.environ.get('LATHE_CACHE_DIR')
    if named is not None:
        return pathlib.Path(named, 'torch') if named else None
    home = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    return pathlib.Path(home, 'lathe', 'torch')


@contextlib.contextmanager
def saved(program: Any) -> Iterator[pathlib.Path]:
    """The path of an ONNX program's file while the block runs. What says where it came from is left out, so that equal
    programs have equal bytes."""
    size = 0
    graph = program.model.graph
    program.model.metadata_props.clear()
    for value in graph.initializers.values():
        value.metadata_props.clear()
        size += value.const_value.nbytes if value.const_value is not None else 0
    for node in graph.all_nodes():
        node.metadata_props.clear()
        for output in node.outputs:
            output.metadata_props.clear()
    for value in graph.inputs:
        value.metadata_props.clear()
    with tempfile.TemporaryDirectory(prefix='lathe-torch-') as folder:
        path = pathlib.Path(folder, 'model.onnx')
        program.save(path, external_data=size > INLINE_BYTES)
        yield path


def _digest(folder: pathlib.Path, request: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(json.dumps(request, sort_keys=True).encode(), digest_size=16)
    for path in sorted(folder.iterdir()):
        with open(path, 'rb') as file:
            while piece := file.read(1 << 24):
                digest.update(piece)
    return digest.hexdigest()


def plan_of(model: pathlib.Path, ranges: Mapping[str, Range], target: str, options: Options) -> bytes:
    """The plan of an ONNX file, which nothing else is in the folder of but its weights. ranges: (min, opt, max) of inputs
    with open sizes. Raises Error."""
    request: dict[str, Any] = {
        'precision': options.precision, 'target': target, 'refit': options.refit, 'framework': f'torch {torch.__version__}',
        'threads': threads_of(options) if target.startswith('cpu') else 0}
    if options.budget is not None:
        request['budget_seconds'] = options.budget
    if ranges:
        request['profiles'] = [{name: dict(zip(('min', 'opt', 'max'), map(list, sizes))) for name, sizes in ranges.items()}]
    named = model.rename(model.with_name(f'{_digest(model.parent, request)}.onnx'))
    request |= {'onnx': str(named), 'directory': str(_cache_folder(options) or model.parent)}
    messages = Reports()
    try:
        return bytes(_tensorrt._artifact_plan(json.dumps(request), messages, CACHE_BYTES))
    except RuntimeError as error:
        raise Error('; '.join(messages.errors) or str(error)) from None
    finally:
        named.rename(model)
