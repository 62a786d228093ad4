"""Opening the parts of a placed artifact: everything that its manifest says of them is checked.

Files of parts have hashes in the manifest of the whole, and again in those of the parts, which must
be equal. Each value has one origin, before it is read; its shape and type are the same wherever it
passes; and what is transferred is what has to be.
"""

from __future__ import annotations

from typing import NoReturn

from fewbit.errors import Place, StoreError
from fewbit.program.artifact import KIND, MANIFEST, Folder, Manifest, Part, Tensor, open_folder
from fewbit.runtime.flow import Flow


def open_parts(folder: Folder) -> list[Folder]:
    """Return the folders of all parts, in the order of their calls."""
    if "default" not in folder.manifest.options:
        _refuse(folder, "it does not say where functions run")
    names = [part.name for part in folder.manifest.parts]
    if len(set(names)) != len(names):
        _refuse(folder, "two parts have one name")
    parts = [_open(folder, part) for part in folder.manifest.parts]
    _check_values(folder, [part.manifest for part in parts])
    _check_transfers(folder)
    return parts


def _open(folder: Folder, part: Part) -> Folder:
    opened = open_folder(folder.file(f"{part.name}/{MANIFEST}").parent)
    manifest = opened.manifest
    if manifest.parts:
        _refuse(folder, f"{part.name} has parts itself")
    if manifest.target != part.target:
        _refuse(folder, f"{part.name} is for {manifest.target}, and not for {part.target}")
    prefix = f"{part.name}/"
    recorded = {
        name.removeprefix(prefix): digest
        for name, digest in folder.manifest.files.items()
        if name.startswith(prefix) and name != f"{prefix}{MANIFEST}"
    }
    if recorded != manifest.files:
        _refuse(folder, f"the files of {part.name} are not those of its own manifest")
    ports = len(manifest.inputs), len(manifest.outputs)
    if ports != (len(part.inputs), len(part.outputs)):
        _refuse(folder, f"{part.name} has {ports[0]} inputs and {ports[1]} outputs")
    return opened


def _check_values(folder: Folder, parts: list[Manifest]) -> None:
    known = {tensor.name: tensor for tensor in folder.manifest.inputs}
    for part, manifest in zip(folder.manifest.parts, parts, strict=True):
        for name, port in zip(part.inputs, manifest.inputs, strict=True):
            _check_port(folder, f"{part.name} reads", known.get(name), name, port)
        for name, port in zip(part.outputs, manifest.outputs, strict=True):
            if name in known:
                _refuse(folder, f"'{name}' is given twice")
            known[name] = port
    if len(folder.manifest.results) != len(folder.manifest.outputs):
        _refuse(folder, "not every output is a value")
    for name, port in zip(folder.manifest.results, folder.manifest.outputs, strict=True):
        _check_port(folder, f"the output '{port.name}' is", known.get(name), name, port)
    for transfer in folder.manifest.transfers:
        value = transfer.value
        _check_port(folder, "a transfer moves", known.get(value.name), value.name, value)


def _check_port(folder: Folder, what: str, given: Tensor | None, name: str, wanted: Tensor) -> None:
    if given is None:
        _refuse(folder, f"{what} '{name}', which is not there by then")
    fits = len(given.shape) == len(wanted.shape) and all(
        None in (a, b) or a == b for a, b in zip(given.shape, wanted.shape, strict=True)
    )
    if not fits or given.element != wanted.element:
        _refuse(folder, f"{what} '{name}' as another tensor ({wanted}) than it is ({given})")


def _check_transfers(folder: Folder) -> None:
    listed = [(t.value.name, t.source, t.target) for t in folder.manifest.transfers]
    if len(set(listed)) != len(listed) or set(listed) != Flow(folder.manifest).needed:
        _refuse(folder, "the transfers are not those that the parts need")


def _refuse(folder: Folder, why: str) -> NoReturn:
    place = Place(file=str(folder.path / MANIFEST))
    raise StoreError(f"the parts do not fit together: {why}", place=place, hint=KIND.remake)
