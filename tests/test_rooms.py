"""Import rules of ARCHITECTURE.md, kept by looking at the imports of every file."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "mnn_core"

#: Folder -> modules of mnn_core that it must not import, anywhere in its files.
FORBIDDEN = {
    "ir": {"ops", "formats", "passes", "plan", "runtime", "backends", "session", "cli", "plugins", "convert", "testing"},
    "ops": {"passes", "plan", "runtime", "backends", "session", "cli", "testing", "convert"},
    "formats": {"plan", "runtime", "backends", "session", "cli", "testing", "convert", "passes"},
    "passes": {"plan", "runtime", "backends", "session", "cli", "testing", "formats"},
    "runtime": {"ops", "formats", "passes", "plan", "backends", "session", "cli", "plugins", "testing"},
    "backends": {"formats", "passes", "session", "cli", "testing", "convert"},
    "plan": {"formats", "passes", "session", "cli", "testing", "convert"},
}
THIRD_PARTY = {"numpy", "pluggy"}
#: Optional packages, and the only files that may import them.
OPTIONAL = {"PIL": {"cli/inputs.py", "ops/image_decoder.py"}, "pytest": {"testing/conformance.py"},
            "ml_dtypes": {"ir/dtypes.py"}}


def imports(path: Path) -> set[str]:
    """Absolute names of the modules that a file imports, relative ones resolved."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = [*package[: len(package) - node.level + 1]] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{a.name}" for a in node.names)} if base == "mnn_core" else {base}
    return found


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda p: str(p.relative_to(CORE)))
def test_core_file_keeps_to_its_room(path: Path) -> None:
    inside = path.relative_to(CORE)
    room = inside.parts[0]
    for name in imports(path):
        top, *rest = name.split(".")
        if top == "mnn_core":
            assert not (rest and rest[0] in FORBIDDEN.get(room, set())), f"{inside} imports {name}"
        elif not top.startswith("mnn_"):
            known = top in sys.stdlib_module_names or top in THIRD_PARTY or str(inside) in OPTIONAL.get(top, set())
            assert known or top == "__future__", f"{inside} imports {name}"
        else:
            raise AssertionError(f"{inside} imports the plugin {name}")


def test_plugins_use_public_names_only() -> None:
    for path in (ROOT / "plugins").rglob("src/**/*.py"):
        for name in imports(path):
            assert not any(part.startswith("_") for part in name.split(".")[1:]), f"{path.relative_to(ROOT)} imports {name}"
