"""The page of ONNX operators is what the rules tell now; what it tells is true."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from pathlib import Path

import pytest

from mnn_core.cli.main import main
from mnn_core.convert import _call

TOOL = Path(__file__).parents[2] / "tools" / "gen_docs.py"


def test_the_committed_page_is_what_would_be_generated(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("gen_docs", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run: python tools/gen_docs.py"


def test_operators_tell_versions_constraints_and_whether_mnn_runs_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--framework", "onnx", "--json"]) == 0
    rows = {row["operator"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["Relu"]["mnn"] == "yes"
    assert rows["SequenceConstruct"]["mnn"] == "no"
    assert "BatchNormalization in training mode" in rows["BatchNormalization"]["notes"]
    assert rows["Conv"]["opsets"] == "1 on"


def test_every_option_of_the_guide_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (TOOL.parents[1] / "docs" / "conversion.md").read_text(encoding="utf-8").partition("## Finding")[0]
    with pytest.raises(SystemExit):
        main(["convert", "--help"])
    told = capsys.readouterr().out
    missing = [o for o in re.findall(r"`(--?[a-zA-Z][\w-]*)", guide) if o not in told and o != "--flag"]
    assert not missing


def test_python_options_of_the_guide_exist() -> None:
    guide = (TOOL.parents[1] / "docs" / "conversion.md").read_text(encoding="utf-8")
    rows = [line.split("|")[3] for line in guide.splitlines() if line.startswith("| `-")]
    named = {n for cell in rows for n in re.findall(r"\b([a-z_0-9]+)\b(?!\.)", cell.replace("formats.mnn_json.dump", ""))}
    assert named - {"source", "target", "allow_custom_op"} <= set(inspect.signature(_call).parameters)
    assert len(named) > 20
