"""Archives of a store, under their documented import path."""

from firefly_memory.transfer.archive import (
    FORMAT,
    MAX_LINE,
    Progress,
    async_export_jsonl,
    async_import_jsonl,
    export_jsonl,
    import_jsonl,
)

__all__ = [
    "FORMAT",
    "MAX_LINE",
    "Progress",
    "async_export_jsonl",
    "async_import_jsonl",
    "export_jsonl",
    "import_jsonl",
]
