"""mnn plugins"""

from __future__ import annotations

import argparse
import re
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import plugins
from ..errors import PluginError
from .common import command, print_json, table


def add(commands: Any) -> None:
    parser = command(commands, "plugins", lambda args: args.action(args), "list, examine, test and create plugins",
                     "mnn plugins list")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="every plugin with its state and the reason for it")
    listing.add_argument("--json", action="store_true")
    listing.set_defaults(action=list_plugins)
    info = actions.add_parser("info", help="all about one plugin: devices, capabilities, the error that broke it")
    info.add_argument("id", help='id, or "id@distribution"')
    info.set_defaults(action=show)
    test = actions.add_parser("test", help="run the conformance kit on a backend")
    test.add_argument("id")
    test.add_argument("--op", action="append", help="only this op type; may repeat")
    test.set_defaults(action=conformance)
    new = actions.add_parser("new", help="write a ready-to-build plugin package")
    new.add_argument("name", help="distribution name: mnn-foo")
    new.add_argument("--folder", default=".", help="where to make it (default: here)")
    new.set_defaults(action=create)


def list_plugins(args: argparse.Namespace) -> int:
    found = plugins.plugins()
    if args.json:
        print_json([asdict_plain(p) for p in found])
    else:
        print(table([(p.id, p.kind, p.distribution, p.version, p.api, p.state, p.reason) for p in found],
                    ("id", "kind", "distribution", "version", "api", "state", "reason")))
    return 0


def asdict_plain(info: plugins.PluginInfo) -> dict[str, Any]:
    """A PluginInfo as plain data."""
    return {"id": info.id, "kind": info.kind, "distribution": info.distribution, "version": info.version, "api": info.api,
            "state": info.state, "reason": info.reason, "devices": [asdict(d) for d in info.devices]}


def show(args: argparse.Namespace) -> int:
    plain, _, dist = args.id.partition("@")
    found = [plugins.check(p) for p in plugins.infos() if p.id == plain and (not dist or p.distribution == dist)]
    if not found:
        raise PluginError(f"there is no plugin {args.id!r}; `mnn plugins list` shows all")
    for info in found:
        print(f"{info.id} ({info.kind} of {info.distribution} {info.version}), API {info.api or '?'}: {info.state}"
              + (f", {info.reason}" if info.reason else ""))
        for device in info.devices:
            print(f"  device {device.id}: {device.name}")
            for key, value in device.capabilities.items():
                print(f"    {key}: {value}")
        if info.error is not None:
            print("".join(traceback.format_exception(info.error)))
    return 0


def conformance(args: argparse.Namespace) -> int:
    from ..testing import run_conformance

    results = run_conformance(args.id, args.op)
    failed = [r for r in results if r.outcome == "failed"]
    for result in failed:
        print(f"FAILED {result.name}: {result.detail}")
    of = {outcome: {r.op for r in results if r.outcome == outcome} for outcome in ("passed", "declined")}
    declined = sorted(of["declined"] - of["passed"])
    if declined:
        print(f"declined (other backends run them): {', '.join(declined)}")
    print(f"{sum(r.outcome == 'passed' for r in results)} passed, {len(failed)} failed, "
          f"{sum(r.outcome == 'declined' for r in results)} declined")
    return int(bool(failed))


PYPROJECT = '''[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "0.1.0"
dependencies = ["mnn-core"]

[project.entry-points."mnn.ops"]
{id} = "{package}"

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
'''

MODULE = '''"""{name}: a plugin of mnn-core. Registers the op {id}.Scale."""

import numpy as np

import mnn_core as mnn

mnn_api = (1, 0)


def scale(op, x):
    """x * factor."""
    return (x * op["factor"]).astype(x.dtype)


@mnn.hookimpl
def mnn_register_ops():
    mnn.register_op(
        "{id}.Scale",
        attrs={{"factor": 2.0}},
        onnx="com.{id}.Scale",  # ONNX nodes of this domain and name become the op
        examples=[mnn.Example({{"factor": 3.0}}, [mnn.Spec((2, 3), np.dtype(np.float32))])],
    )(scale)
'''

TEST = '''import numpy as np

import mnn_core as mnn


def test_scale():
    graph = mnn.Graph(
        ops=[mnn.Op("{id}.Scale", ["x"], ["y"], {{"factor": 3.0}})],
        inputs=[mnn.TensorInfo("x", np.dtype(np.float32), (None,))],
        outputs=[mnn.TensorInfo("y", np.dtype(np.float32), (None,))],
    )
    assert mnn.load(graph, backend="numpy").run({{"x": np.float32([1, 2])}})["y"].tolist() == [3, 6]
'''


def create(args: argparse.Namespace) -> int:
    name = args.name.lower()
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise PluginError(f"{args.name!r} is no distribution name; expected lower-case words joined by '-': mnn-foo")
    package = name.replace("-", "_")
    short = package.removeprefix("mnn_")
    root = Path(args.folder) / name
    if root.exists():
        raise PluginError(f"{root} exists already; remove it or choose another name")
    fields = {"name": name, "package": package, "id": short}
    (root / package).mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "pyproject.toml").write_text(PYPROJECT.format(**fields))
    (root / package / "__init__.py").write_text(MODULE.format(**fields))
    (root / "tests" / f"test_{package}.py").write_text(TEST.format(**fields))
    print(f"{root}: build and try it with\n  pip install {root} && python -m pytest {root}/tests")
    return 0
