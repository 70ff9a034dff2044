"""Writes docs/onnx_operators.md from the conversion rules.

    python tools/gen_docs.py            # writes the page
    python tools/gen_docs.py --check    # exits with 1 if the page is not what would be written
"""

from __future__ import annotations

import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "onnx_operators.md"

HEAD = """# ONNX operators

Written by `python tools/gen_docs.py` from the conversion rules; do not edit. `mnn ops --framework onnx` prints the same.

{count} operators are converted by rules of their own. Beside them, functions of a model and operators that the ONNX standard
defines as functions of others are expanded, and registered ops (`mnn_core.register_op(..., onnx="domain.Name")`) are taken as
they are.

*opsets*: versions of the domain's operator set. *MNN*: whether the real MNN 3.6 runs the result: "some forms" needs ops or
attributes of this engine for others, which files hold as Extra ops; `mnn convert` names them. *not*: what is refused, with that
reason, before anything is written; "..." stands for a value of the model.
"""


def page() -> str:
    """The page as it should be."""
    from mnn_core import plugins

    rows = plugins.converter("onnx").describe()
    domains: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        domains.setdefault(row["operator"].rpartition(".")[0], []).append(row)
    parts = [HEAD.format(count=len(rows))]
    for domain, found in domains.items():
        head = f"## {domain or 'ai.onnx'} ({len(found)})\n\n| operator | opsets | MNN | notes |\n|---|---|---|---|\n"
        parts.append(head + "".join(
            f"| {r['operator'].rpartition('.')[2]} | {r['opsets']} | {r['mnn']} | {_cell(r['notes'])} |\n" for r in found))
    return "\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def main() -> int:
    """Writes or checks the page."""
    text = page()
    if "--check" in sys.argv[1:]:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print(f"{PAGE.name} is {'up to date' if same else 'not what would be generated: run python tools/gen_docs.py'}")
        return int(not same)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
