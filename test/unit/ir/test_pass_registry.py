"""Passes that are registered again under one name, as in a notebook."""

from dataclasses import dataclass

import pytest
from mlir import ir

import xegpu_py
from xegpu_py.ir import passes
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.ir.upstream_pass_names import UPSTREAM_PASSES

PIPELINE = "builtin.module(test-mark{value=1})"


def test_a_pass_that_is_registered_again_is_the_new_one(monkeypatch):
    monkeypatch.setattr(passes, "_REGISTRY", dict(passes._REGISTRY))

    @register_pass("test-mark")
    @dataclass
    class Mark(Pass):
        """Mark the module."""

        value: int = 0

        def run(self, op: ir.Operation) -> None:
            with op.context:
                op.attributes["test.mark"] = ir.Attribute.parse(str(self.value))

    module = xegpu_py.parse("module {}")
    xegpu_py.run_pipeline(module, PIPELINE)
    assert "test.mark = 1 " in str(module)

    @register_pass("test-mark")
    @dataclass
    class Other(Pass):
        """Mark the module without options."""

        def run(self, op: ir.Operation) -> None:
            with op.context:
                op.attributes["test.other"] = ir.UnitAttr.get()

    with pytest.raises(xegpu_py.DiagnosticError, match="has no option 'value'"):
        xegpu_py.run_pipeline(module, PIPELINE)
    xegpu_py.run_pipeline(module, "builtin.module(test-mark)")
    assert "test.other" in str(module)


def test_the_bindings_have_every_listed_pass_of_mlir() -> None:
    assert passes.upstream_pass_names() == sorted(UPSTREAM_PASSES)


def test_an_entry_point_whose_module_registers_no_such_pass(monkeypatch) -> None:
    monkeypatch.setattr(passes, "plugin_passes", lambda: {"test-absent": "json"})
    with pytest.raises(xegpu_py.DiagnosticError, match="^json: error: the module registers no pass 'test-absent'"):
        passes.pass_named("test-absent")
