"""Where what is killed in tests writes: temporary files of all else may lie in memory (scripts/in_memory)."""

from pathlib import Path

DISK = Path(__file__).resolve().parent.parent / ".cache" / "killed"
