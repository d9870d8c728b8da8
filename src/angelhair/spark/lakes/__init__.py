"""A queue's lake: its history as files of a table, in one of three formats. One file a format, all with the same verbs.

The format of a lake is chosen when it is made, and recognised by what is in its folder from then on.
"""

from __future__ import annotations

import posixpath

from pyarrow import fs

from angelhair.errors import InvalidRequest, StoreRefused
from angelhair.spark.lakes.files import LakeFile, folder_of, table_place
from angelhair.spark.lakes.port import Lake, LakeMoved, NoLake

__all__ = [
    "DEFAULT_FORMAT", "FORMATS", "Lake", "LakeFile", "LakeMoved", "NoLake", "folder_of", "format_at", "made_lake",
    "open_lake", "table_place",
]

FORMATS = {"delta": "_delta_log", "iceberg": "metadata", "parquet": "_manifest"}
"""Every format, and the folder that a lake of it has."""

DEFAULT_FORMAT = "delta"


def format_at(place: str) -> str | None:
    """None where there is no lake."""
    filesystem, folder = folder_of(place)
    infos = filesystem.get_file_info([posixpath.join(folder, each) for each in FORMATS.values()])
    found = [name for name, info in zip(FORMATS, infos, strict=True) if info.type == fs.FileType.Directory]
    if len(found) > 1:
        raise StoreRefused(f"{place} looks like a lake of {' and of '.join(found)}: which of them is it?")
    return found[0] if found else None


def open_lake(place: str) -> Lake:
    """As it is. Raises `NoLake`."""
    found = format_at(place)
    if found is None:
        raise NoLake(f"there is no lake at {place}")
    return _class_of(found)(place)


def made_lake(place: str, wanted: str | None = None) -> Lake:
    """For who adds to it: made if it is not there, and with the columns that this version writes."""
    if wanted is not None and wanted not in FORMATS:
        raise InvalidRequest("format", f"{wanted!r} is none of {', '.join(FORMATS)}")
    found = format_at(place)
    if wanted is not None and found is not None and wanted != found:
        raise StoreRefused(f"the lake at {place} is of the format {found}, which --format {wanted} does not change")
    lake: Lake = _class_of(found or wanted or DEFAULT_FORMAT).made(place)
    return lake


def _class_of(name: str) -> type[Lake]:
    """Imported when it is used: each brings a library of its own."""
    if name == "delta":
        from angelhair.spark.lakes.delta import DeltaLake

        return DeltaLake
    if name == "iceberg":
        from angelhair.spark.lakes.iceberg import IcebergLake

        return IcebergLake
    from angelhair.spark.lakes.manifest import ManifestLake

    return ManifestLake
