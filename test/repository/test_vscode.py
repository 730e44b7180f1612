"""The extension for Visual Studio Code: what it names is there, and its grammars are those of the lexers."""

import json
import subprocess
import sys

import pytest
from markdown import ROOT

FOLDER = ROOT / "editors" / "vscode"


def test_grammars_are_made_from_the_lexers(tmp_path):
    subprocess.run([sys.executable, FOLDER / "grammars.py", tmp_path], check=True)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_text() for path in (FOLDER / "syntaxes").iterdir()}, "run `make docs`"


@pytest.mark.parametrize("name", ["mlir", "visaasm"])
def test_the_package_names_what_is_there(name):
    package = json.loads((FOLDER / "package.json").read_text())["contributes"]
    (language,) = (part for part in package["languages"] if part["id"] == name)
    (grammar,) = (part for part in package["grammars"] if part["language"] == name)
    assert json.loads((FOLDER / grammar["path"]).read_text())["scopeName"] == grammar["scopeName"]
    assert json.loads((FOLDER / language["configuration"]).read_text())["comments"] == {"lineComment": "//"}
