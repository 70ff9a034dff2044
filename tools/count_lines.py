"""Counts the lines of the microkernel against its budget, and the length of files. Exits with 1 over budget.

    python tools/count_lines.py [BASE]      BASE: a git revision to show the change from (default: HEAD~1)

The microkernel is what every model needs: graph, planner, runtime, backend and plugin interfaces, sessions. Vocabulary that
grows by rows (ops, formats, passes) and tools around it (cli, testing) are not counted; nor are comments and docstrings.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGET = 4000
P90 = 300
UNCOUNTED = {"ops", "formats", "passes", "cli", "testing"}
SUFFIXES = {".py", ".pyx", ".pxd", ".pxi", ".cpp", ".hpp", ".h"}


def counted(path: str) -> bool:
    """Whether a file belongs to the microkernel."""
    parts = Path(path).parts
    return Path(path).suffix in SUFFIXES and parts[0] == "mnn_core" and parts[1] not in UNCOUNTED


def docstring_lines(text: str) -> set[int]:
    """Numbers of the lines of a Python file's docstrings."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False) is not None:
            found.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return found


def code_lines(path: str, text: str) -> int:
    """Lines that are neither empty nor comments nor docstrings."""
    docs = docstring_lines(text) if path.endswith(".py") else set()
    return sum(1 for number, line in enumerate(text.splitlines(), 1)
               if line.strip() and not line.strip().startswith(("#", "//", "/*", "*")) and number not in docs)


def git(*arguments: str) -> str:
    """Output of a git command, or "" where it fails."""
    run = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else ""


def main() -> int:
    base = sys.argv[1] if len(sys.argv) > 1 else "HEAD~1"
    files = [f for f in git("ls-files").splitlines() if Path(f).suffix in SUFFIXES and (ROOT / f).exists()]
    core = sum(code_lines(f, (ROOT / f).read_text()) for f in files if counted(f))
    old = git("ls-tree", "-r", "--name-only", base).splitlines()
    before = sum(code_lines(f, git("show", f"{base}:{f}")) for f in old if counted(f))
    lengths = sorted(len((ROOT / f).read_text().splitlines()) for f in files)
    p90 = lengths[int(0.9 * (len(lengths) - 1))] if lengths else 0
    print(f"microkernel: {core} lines of code (budget {BUDGET}, {core - before:+d} since {base}); "
          f"90th percentile of file length: {p90} (limit {P90})")
    return int(core > BUDGET or p90 > P90)


if __name__ == "__main__":
    sys.exit(main())
