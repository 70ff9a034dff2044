"""Counts the lines of the core against its budget, and the length of files. Exits with 1 over budget.

    python tools/count_lines.py [BASE]      BASE: a git revision to show the change from (default: HEAD~1, where it exists)
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGET = 4000
P90 = 300
SUFFIXES = {".py", ".pyx", ".pxd", ".pxi", ".cpp", ".hpp", ".h"}


def counted(path: str) -> bool:
    """Whether a file belongs to the budgeted core: mnn_core without ops/ and formats/."""
    parts = Path(path).parts
    return Path(path).suffix in SUFFIXES and parts[0] == "mnn_core" and parts[1] not in ("ops", "formats")


def code_lines(text: str) -> int:
    """Lines that are neither empty nor comments."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith(("#", "//")))


def git(*arguments: str) -> str:
    """Output of a git command, or "" where it fails."""
    run = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else ""


def main() -> int:
    base = sys.argv[1] if len(sys.argv) > 1 else "HEAD~1"
    files = [f for f in git("ls-files").splitlines() if Path(f).suffix in SUFFIXES and (ROOT / f).exists()]
    core = sum(code_lines((ROOT / f).read_text()) for f in files if counted(f))
    old = git("ls-tree", "-r", "--name-only", base).splitlines()
    before = sum(code_lines(git("show", f"{base}:{f}")) for f in old if counted(f))
    lengths = sorted(len((ROOT / f).read_text().splitlines()) for f in files)
    p90 = lengths[int(0.9 * (len(lengths) - 1))] if lengths else 0
    print(f"core without ops and formats: {core} lines of code (budget {BUDGET}, {core - before:+d} since {base}); "
          f"90th percentile of file length: {p90} (limit {P90})")
    return int(core > BUDGET or p90 > P90)


if __name__ == "__main__":
    sys.exit(main())
