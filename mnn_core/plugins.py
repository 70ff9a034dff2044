"""Finding and loading plugins: discovery from package metadata, states, isolation of what is broken.

Discovery never imports a plugin. One is imported when its id is first used, then registered with pluggy; what goes wrong
is kept with the plugin and shown, and touches neither the core nor other plugins.
"""

from __future__ import annotations

import os
import platform
import threading
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

from . import hooks
from ._callable import make_callable
from .errors import BackendError, ConversionError, MNNError, PluginError
from .version import API_VERSION

if TYPE_CHECKING:
    from .backends import Backend, Device
    from .converter import Converter
    from .passes import Pass

KINDS = {"mnn.backends": "backend", "mnn.converters": "converter", "mnn.ops": "ops", "mnn.passes": "passes",
         "mnn.commands": "command"}

#: Plugins of this project that need not be installed: (kind, id) -> distribution.
KNOWN = {
    ("backend", "cpu-x86"): "mnn-cpu-x86",
    ("backend", "cpu-arm"): "mnn-cpu-arm",
    ("backend", "opencl"): "mnn-opencl",
    ("backend", "cuda"): "mnn-cuda",
    ("backend", "qnn"): "mnn-qnn",
    ("converter", "onnx"): "mnn-converter-onnx",
    ("converter", "tflite"): "mnn-converter-tflite",
    ("converter", "tf"): "mnn-converter-tf",
    ("converter", "caffe"): "mnn-converter-caffe",
    ("converter", "torch"): "mnn-converter-torch",
}

#: File extension -> id of the converter that reads it; other extensions are asked of the installed converters.
EXTENSIONS = {".onnx": "onnx", ".tflite": "tflite", ".pb": "tf", ".caffemodel": "caffe", ".prototxt": "caffe", ".pt": "torch"}


@dataclass
class PluginInfo:
    """A plugin and what became of it.

    state: "missing" (known, not installed), "found" (installed, not used yet), "incompatible" (another API version), "broken"
    (importing or probing it raised), "no-device", "ready" (imported; a backend really was opened on a device).
    """

    id: str
    kind: str
    distribution: str
    version: str
    state: str
    reason: str = ""
    api: str = ""
    devices: list[Device] = field(default_factory=list)
    error: BaseException | None = field(default=None, repr=False)
    entry_point: EntryPoint | None = field(default=None, repr=False)
    target: Any = field(default=None, repr=False)

    @property
    def qualified(self) -> str:
        return f"{self.id}@{self.distribution}"


def _api_range(api: tuple[int, int]) -> str:
    return f">={api[0]}.{api[1]},<{api[0] + 1}"


class Registry:
    """All plugins of one Python environment."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._manager = pluggy.PluginManager("mnn")
        self._manager.add_hookspecs(hooks)
        self._found: list[PluginInfo] | None = None
        self._ops_loaded = False

    def infos(self) -> list[PluginInfo]:
        """Every plugin that is installed, then those of this project that are not. Reads metadata only."""
        with self._lock:
            if self._found is None:
                self._found = self._discover()
            return list(self._found)

    @staticmethod
    def _discover() -> list[PluginInfo]:
        wanted = os.environ.get("MNN_PLUGINS")
        allowed = None if wanted is None else {w.strip() for w in wanted.split(",")} - {"", "off"}
        found = []
        for group, kind in KINDS.items():
            for ep in sorted(entry_points(group=group), key=lambda e: e.name):
                dist = ep.dist.name if ep.dist else "?"
                version = ep.dist.version if ep.dist else "?"
                if allowed is None or ep.name in allowed or f"{ep.name}@{dist}" in allowed:
                    found.append(PluginInfo(ep.name, kind, dist, version, "found", entry_point=ep))
        have = {(p.kind, p.id) for p in found}
        found += [PluginInfo(name, kind, dist, "", "missing", f"not installed: pip install {dist}")
                  for (kind, name), dist in KNOWN.items() if (kind, name) not in have and allowed is None]
        return found

    def select(self, kind: str, name: str) -> PluginInfo:
        """The plugin of a kind with an id, or "id@distribution". Raises PluginError if unknown or claimed twice."""
        plain, _, dist = name.partition("@")
        found = [p for p in self.infos() if p.kind == kind and p.id == plain and (not dist or p.distribution == dist)]
        if len(found) > 1:
            raise PluginError(f"{kind} {plain!r} is claimed by {len(found)} installed packages: "
                              f"{', '.join(f'{p.distribution} {p.version}' for p in found)}; "
                              f"name one as {found[0].qualified!r}, or uninstall the other")
        if not found:
            known = sorted({p.id for p in self.infos() if p.kind == kind and p.state != "missing"})
            note = f" (MNN_PLUGINS={os.environ['MNN_PLUGINS']} limits what is loaded)" if "MNN_PLUGINS" in os.environ else ""
            raise PluginError(f"there is no {kind} {name!r}; installed: {', '.join(known) or 'none'}{note}")
        return found[0]

    def load(self, info: PluginInfo) -> Any:
        """Imports a plugin and registers it with pluggy. Raises PluginError with what the state says."""
        with self._lock:
            if info.target is None and info.state == "found":
                self._import(info)
            if info.target is None:
                raise PluginError(f"{info.kind} plugin {info.id!r} ({info.distribution} {info.version}) is {info.state}: "
                                  f"{info.reason}") from info.error
            return info.target

    def _import(self, info: PluginInfo) -> None:
        assert info.entry_point is not None
        try:
            target = info.entry_point.load()
            api = tuple(getattr(target, "mnn_api", (API_VERSION[0], 0)))
            if len(api) != 2 or not all(isinstance(v, int) for v in api):
                raise PluginError(f"its mnn_api is {api!r}; expected (major, minor)")
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # a plugin may raise anything, SystemExit too; it must not take the program along
            self._fail(info, error)
            return
        info.api = _api_range(api)
        if api[0] != API_VERSION[0] or api[1] > API_VERSION[1]:
            info.state = "incompatible"
            info.reason = (f"built for plugin API {api[0]}.{api[1]}, this mnn_core has {API_VERSION[0]}.{API_VERSION[1]}; "
                           f"upgrade {'mnn-core' if api > API_VERSION else info.distribution}")
            return
        hook = hooks.GROUPS[next(g for g, kind in KINDS.items() if kind == info.kind)]
        if not callable(getattr(target, hook, None)):
            self._fail(info, PluginError(f"{info.entry_point.value} implements no hook {hook}()"))
            return
        if not self._manager.is_registered(target):
            try:
                self._manager.register(target, f"{info.kind}:{info.qualified}")
            except Exception as error:  # pluggy's validation: a hook with wrong arguments
                self._fail(info, error)
                return
        info.target, info.state = target, "ready" if info.kind != "backend" else "found"

    @staticmethod
    def _fail(info: PluginInfo, error: BaseException) -> None:
        info.state, info.error = "broken", error
        info.reason = f"{type(error).__name__}: {' '.join(str(error).split())}"

    def call(self, info: PluginInfo, hook: str, **arguments: Any) -> Any:
        """Calls one hook of one plugin."""
        target = self.load(info)
        others = [p for p in self._manager.get_plugins() if p is not target]
        return self._manager.subset_hook_caller(hook, others)(**arguments)

    def backend_class(self, name: str) -> type[Backend]:
        """The class of a backend by id. Raises BackendError saying what is installed, or what to install."""
        if name == "numpy":
            from .backends.numpy_backend import NumpyBackend

            return NumpyBackend
        try:
            info = self.select("backend", name)
            if info.state == "missing":
                raise PluginError(f"backend {name!r} is {info.reason}")
            return self.call(info, "mnn_backend")
        except PluginError as error:
            raise BackendError(f"{error}. `mnn plugins list` shows all") from error
        except MNNError:
            raise
        except Exception as error:
            self._fail(info, error)
            raise BackendError(f"backend {name!r} ({info.distribution} {info.version}) is broken: {info.reason}") from error

    def backend_ids(self) -> list[str]:
        """Ids of installed backends, "numpy" last."""
        return [*dict.fromkeys(p.id for p in self.infos() if p.kind == "backend" and p.state != "missing"), "numpy"]

    def open_backend(self, name: str) -> tuple[type[Backend], list[Device]]:
        """A backend's class and the devices it can be used on. Raises BackendError if it has none."""
        cls = self.backend_class(name)
        if name == "numpy":
            return cls, cls.probe()
        info = self.select("backend", name)
        try:
            devices = list(cls.probe())
        except Exception as error:
            self._fail(info, error)
            raise BackendError(f"backend {name!r} ({info.distribution} {info.version}) is broken: {info.reason}") from error
        if not devices:
            info.state, info.reason = "no-device", "probing found no device"
            raise BackendError(f"backend {name!r} ({info.distribution} {info.version}) found no device to run on")
        info.devices = devices
        return cls, devices

    def cpu_backends(self) -> tuple[list[str], str]:
        """Ids of usable host backends, the fastest first and without numpy; and a remark when there is none.

        Broken ones are left out here: asking for them by name tells why.
        """
        usable, trouble = [], []
        for info in self.infos():
            if info.kind != "backend" or info.state in ("missing", "broken", "incompatible"):
                continue
            try:
                cls, _ = self.open_backend(info.qualified)
            except (BackendError, PluginError) as error:
                trouble.append(str(error))
                continue
            if cls.host:
                usable.append((cls.priority, info.qualified if self._is_ambiguous(info) else info.id))
        arm = platform.machine().lower() in ("aarch64", "arm64", "armv7l")
        remark = ("no CPU backend is installed, so the slow NumPy reference backend runs: "
                  f"pip install mnn-cpu-{'arm' if arm else 'x86'}")
        return [name for _, name in sorted(usable, key=lambda u: -u[0])], "; ".join([remark, *trouble])

    def _is_ambiguous(self, info: PluginInfo) -> bool:
        return sum(p.kind == info.kind and p.id == info.id for p in self.infos()) > 1

    def converter_for(self, path: str | Path) -> Converter:
        """The converter that reads a file, by its extension. Raises ConversionError saying what to install."""
        extension = Path(path).suffix.lower()
        installed = [p for p in self.infos() if p.kind == "converter" and p.state not in ("missing", "broken", "incompatible")]
        if extension in EXTENSIONS:
            return self.converter(EXTENSIONS[extension])
        for info in installed:
            converter = self.converter(info.qualified)
            if extension in converter.extensions:
                return converter
        raise ConversionError(f"no installed converter reads {extension or 'files without extension'} ({path}); "
                              f"installed: {', '.join(p.id for p in installed) or 'none'}")

    def converter(self, name: str) -> Converter:
        """A converter by id. Raises ConversionError saying what to install."""
        try:
            info = self.select("converter", name)
            if info.state == "missing":
                raise PluginError(f"the {name} converter is {info.reason}")
            return self.call(info, "mnn_converter")
        except PluginError as error:
            raise ConversionError(str(error)) from error

    def load_ops(self) -> None:
        """Registers the ops of all plugins, once. A broken plugin is left out; its ops are then reported as unknown."""
        with self._lock:
            if self._ops_loaded:
                return
            self._ops_loaded = True
            from . import ops  # registers the built-in ones

            assert ops.all_ops()
            for info in [p for p in self.infos() if p.kind == "ops" and p.state == "found"]:
                try:
                    self.call(info, "mnn_register_ops")
                except PluginError:
                    continue  # the state says why
                except Exception as error:
                    self._fail(info, error)

    def passes(self) -> list[Pass]:
        """Graph passes of plugins."""
        found: list[Pass] = []
        for info in [p for p in self.infos() if p.kind == "passes" and p.state in ("found", "ready")]:
            try:
                found += [p for some in self.call(info, "mnn_passes") for p in some]
            except PluginError:
                continue
        return found

    def commands(self, subparsers: Any) -> None:
        """Adds the subcommands of plugins to the `mnn` command."""
        for info in [p for p in self.infos() if p.kind == "command" and p.state in ("found", "ready")]:
            try:
                self.call(info, "mnn_command", subparsers=subparsers)
            except PluginError:
                continue
            except Exception as error:
                self._fail(info, error)

    def check(self, info: PluginInfo) -> PluginInfo:
        """Imports a plugin, and opens a backend on its first device, to find its true state. Never raises."""
        if info.state == "missing":
            return info
        try:
            if info.kind == "backend":
                from .backends import BackendConfig

                cls, devices = self.open_backend(info.qualified)
                cls(devices[0], BackendConfig(threads=1))
                info.state, info.reason = "ready", ", ".join(d.name for d in devices)
            elif info.kind == "converter":
                info.reason = f"reads {', '.join(self.converter(info.qualified).extensions)}"
            else:
                self.load(info)
        except (MNNError, OSError, ImportError) as error:
            if info.state in ("found", "ready"):
                self._fail(info, error)
        except Exception as error:
            self._fail(info, error)
        if self._is_ambiguous(info):
            info.reason = f"{info.reason}; " * bool(info.reason) + f"id claimed more than once: name it {info.qualified!r}"
        return info


_registry = Registry()

infos = _registry.infos
check = _registry.check
select = _registry.select
backend_class = _registry.backend_class
backend_ids = _registry.backend_ids
open_backend = _registry.open_backend
cpu_backends = _registry.cpu_backends
converter = _registry.converter
converter_for = _registry.converter_for
load_ops = _registry.load_ops
passes = _registry.passes
commands = _registry.commands


def plugins() -> list[PluginInfo]:
    """Every plugin with its true state: each is imported, each backend opened on its device."""
    return [check(info) for info in infos()]


_call = plugins
make_callable(__name__)
