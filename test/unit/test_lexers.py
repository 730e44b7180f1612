"""The Pygments lexers recognize all text that this project prints, and lose no character."""

import subprocess
import sys

import pytest
from effort import some
from markdown import ROOT
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Error, Keyword, Name, Number, Text

from xegpu_py.highlighting import MlirLexer, VisaLexer

FILES = sorted(p for top in ("test", "examples") for s in ("*.mlir", "*.visaasm") for p in (ROOT / top).rglob(s))


@pytest.mark.parametrize("path", some(FILES, 1 / 4), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_character_of_a_file_is_known(path):
    text = path.read_text()
    lexer = (MlirLexer if path.suffix == ".mlir" else VisaLexer)(stripnl=False, ensurenl=False)
    found = list(lexer.get_tokens(text))
    assert "".join(value for _, value in found) == text
    code = "\n".join(line.split("//")[0] for line in text.splitlines())
    unknown = [v for t, v in lexer.get_tokens(code) if t in (Text, Error) and not v.isspace()]
    assert not unknown


def test_tokens_of_mlir():
    found = list(MlirLexer().get_tokens("%a = xegpu.load_nd %t : !xegpu.tensor_desc<8x16xbf16> -> vector<?x16xf32>"))
    assert (Name.Builtin, "xegpu.load_nd") in found
    assert (Keyword.Type, "!xegpu.tensor_desc") in found
    assert (Number.Integer, "8x16x") in found and (Keyword.Type, "bf16") in found
    assert (Number.Integer, "?x16x") in found and (Keyword.Type, "f32") in found


def test_tokens_of_visa():
    found = list(VisaLexer().get_tokens("(!P1) add (M1_NM, 16) V1(0,0)<1> V2(0,0)<1;1,0> 0x1:ud"))
    assert (Name.Decorator, "(!P1)") in found
    assert (Name.Builtin, "add") in found
    assert (Name.Attribute, "(M1_NM, 16)") in found
    assert (Keyword.Type, ":ud") in found


def test_entry_points():
    assert isinstance(get_lexer_by_name("xetile"), MlirLexer)
    assert isinstance(get_lexer_for_filename("kernel.visaasm"), VisaLexer)
    text = subprocess.run(
        [sys.executable, "-m", "pygments", "-l", "visaasm", "-f", "raw"],
        input="ret (M1, 1)\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "Token.Name.Builtin\t'ret'" in text
