"""Operators on text, which our engine alone runs."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import rule


@rule("StringConcat")
def string_concat(node: Node, b: Builder) -> None:
    b.op("onnx.StringConcat", node.inputs, node.outputs)


@rule("StringSplit")
def string_split(node: Node, b: Builder) -> None:
    outputs = [node.output(0) or b.context.fresh(f"{node.name}/parts"),
               node.output(1) or b.context.fresh(f"{node.name}/counts")]
    b.op("onnx.StringSplit", node.inputs, outputs, delimiter=node.get("delimiter", ""), maxsplit=node.get("maxsplit", -1))
    b.declare(outputs[1], np.dtype(np.int64))


@rule("StringNormalizer")
def string_normalizer(node: Node, b: Builder) -> None:
    b.op("onnx.StringNormalizer", node.inputs, node.outputs, case_change_action=node.get("case_change_action", "NONE"),
         is_case_sensitive=bool(node.get("is_case_sensitive", 0)), locale=node.get("locale", ""),
         stopwords=tuple(node.get("stopwords", ())))


@rule("RegexFullMatch")
def regex_full_match(node: Node, b: Builder) -> None:
    b.op("onnx.RegexFullMatch", node.inputs, node.outputs, dtype=np.bool_, pattern=node.get("pattern", ""))
