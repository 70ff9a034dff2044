"""From a graph and the shapes of its inputs to a program: infer, lower, merge, place, lay out, allocate, compile."""

from .compile import HostExecutable, compile_host
from .place import Placement
from .scope import Store
from .stages import Plan, Planner, Runner, Stage
from .units import Controls

__all__ = ["Controls", "HostExecutable", "Placement", "Plan", "Planner", "Runner", "Stage", "Store", "compile_host"]
