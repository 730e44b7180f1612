"""`python editors/vscode/grammars.py editors/vscode/syntaxes`: TextMate grammars of MLIR and vISA from lexers.

A TextMate grammar is a list of regular expressions with scopes, as a lexer is one with types of tokens, so that
the languages are described once. The scopes are those of the TextMate manual, section "Naming Conventions".
"""

import json
import sys
from pathlib import Path
from typing import Any

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, _TokenType

from xegpu_py.highlighting import MlirLexer, VisaLexer

_SCOPES = {
    Comment: "comment.line.double-slash",
    Comment.Multiline: "comment.block",
    Keyword: "keyword.control",
    Keyword.Constant: "constant.language",
    Keyword.Declaration: "storage.type",
    Keyword.Type: "storage.type",
    Name.Attribute: "storage.modifier",
    Name.Builtin: "support.function",
    Name.Decorator: "entity.other.attribute-name",
    Name.Function: "entity.name.function",
    Name.Label: "entity.name.label",
    Name.Variable: "variable.other",
    Number: "constant.numeric",
    Operator: "keyword.operator",
    Punctuation: "punctuation",
    String: "string.quoted.double",
}


def _scope(token: _TokenType, language: str) -> str | None:
    """The scope of a type of tokens, or of the nearest of its ancestors that has one."""
    name = next((_SCOPES[t] for t in reversed(token.split()) if t in _SCOPES), None)
    return name and f"{name}.{language}"


def grammar(lexer: type[RegexLexer], language: str) -> dict[str, Any]:
    """The grammar of a lexer with one state."""
    patterns = []
    for rule, action in lexer.tokens["root"]:
        pattern: dict[str, Any] = {"match": rule.get() if isinstance(rule, words) else rule}
        if isinstance(action, _TokenType):
            scopes = {"name": _scope(action, language)}
        else:
            # `bygroups`, which keeps the types of the groups in a closure.
            (groups,) = (cell.cell_contents for cell in action.__closure__)
            named = {str(n): _scope(token, language) for n, token in enumerate(groups, 1) if token}
            scopes = {"captures": {n: {"name": name} for n, name in named.items() if name}}
        if all(scopes.values()):
            patterns.append(pattern | scopes)
    return {"name": lexer.name, "scopeName": f"source.{language}", "patterns": patterns}


def main(folder: Path) -> None:
    """Write both grammars."""
    for lexer, language in ((MlirLexer, "mlir"), (VisaLexer, "visaasm")):
        text = json.dumps(grammar(lexer, language), indent=2, ensure_ascii=False)
        (folder / f"{language}.tmLanguage.json").write_text(text + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(
            print("grammars.py: skipped: needs a folder: python editors/vscode/grammars.py editors/vscode/syntaxes")
        )
    main(Path(sys.argv[1]))
