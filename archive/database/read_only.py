"""Read-only guard: a check that a Cypher text can only read.

It is the first of three protections of the data.

The text is cut into tokens; words inside comments, strings and quoted names do not count. The guard
refuses a text with a keyword of a writing clause, with a procedure or a function that is not on the
list of harmless ones, or with a second statement. A keyword in the position of a name is accepted:
`n.set`, `:Create`, `{delete: 1}`, `AS merge`. An ambiguous text is refused, with a message that
tells to put the name in backticks.

Wherever the list is short (first keyword, procedures, namespaces of functions), the guard lists
the permitted ones. A command of a newer server is therefore refused until it is listed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from archive.errors import ReadOnlyError, UnknownStatementError

WRITING_WORDS = frozenset(
    """ALTER CREATE DELETE DENY DETACH DROP FOREACH GRANT INSERT LOAD MERGE NODETACH PERIODIC REMOVE REVOKE SET
    TERMINATE TRANSACTION TRANSACTIONS USE""".split()
)
FIRST_WORDS = frozenset(
    "CALL CYPHER EXPLAIN FILTER FINISH FOR LET MATCH OPTIONAL PROFILE RETURN SHOW UNWIND WITH".split()
)
COMMAND_WORDS = WRITING_WORDS | frozenset(
    """ALIGN ANALYZE BACKUP BEGIN CHECK CLOSE COMMIT CONSOLE COPY DEALLOCATE DISABLE DRYRUN ENABLE EXEC EXECUTE EXPORT
    IF IMPORT LOCK MOVE PROFILER REALLOCATE REBUILD RENAME REPLACE ROLLBACK SCRIPT SELECT START STOP TRAVERSE TRUNCATE
    UNLOCK UPDATE UPSERT USING""".split()
)
"""First words of commands in the languages of both servers.

They only choose the message: no other word is let pass.
"""
READING_PROCEDURES = frozenset(
    """db.index.fulltext.querynodes db.index.fulltext.queryrelationships db.index.vector.querynodes
    db.index.vector.queryrelationships db.info db.labels db.ping db.propertykeys db.relationshiptypes
    db.schema.nodetypeproperties db.schema.reltypeproperties db.schema.visualization dbms.components""".split()
)
FUNCTION_SPACES = frozenset(
    "date datetime duration localdatetime localtime point time vector".split()
)
OUTSIDE_FUNCTIONS = frozenset(["file", "linenumber"])

_TOKENS = re.compile(
    r"""(?P<space>\s+|//[^\r\n]*|/\*.*?\*/)
      | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<number>\d+)
      | (?P<word>[^\W\d]\w*)
      | (?P<mark>\.\.|.)""",
    re.VERBOSE | re.DOTALL,
)
_UNICODE_ESCAPE = re.compile(r"\\u+([0-9A-Fa-f]{4})")
_BATCHES = re.compile(r"\} IN (\S+ ){0,3}TRANSACTIONS\b")
_BEFORE_A_NAME = frozenset([".", ":", "|", "&", "!", "$"])


class Token(NamedTuple):
    """Token of the text: kind, text (upper case for a word), position, and original text."""

    kind: str
    text: str
    at: int
    written: str


def require_read_only(cypher: str) -> None:
    """Refuse a text that may do more than read.

    Raises:
        ReadOnlyError: The text could write, or is unclear; the message names the place.
        UnknownStatementError: It is refused because it begins as no statement does.
    """
    for text in _readings(cypher):
        tokens = _tokens(text)
        _check_statement(text, tokens)
        for position, token in enumerate(tokens):
            if token.kind == "word" and not _is_name(tokens, position):
                _check_word(text, tokens, position)

            if token.kind in ("word", "quoted"):
                _check_function(text, tokens, position)


def without_end_mark(cypher: str) -> str:
    """Return the text up to a closing `;`, because some servers accept no `;`."""
    try:
        tokens = _tokens(cypher)
    except ReadOnlyError:
        return cypher  # a string or comment is not closed; the server's message is the best

    end = len(tokens)
    while end and tokens[end - 1].text == ";":
        end -= 1

    return cypher[: tokens[end].at] if end < len(tokens) else cypher


def split_statements(text: str) -> tuple[list[str], str]:
    """Return the statements of a text that end with `;`, without it, and what follows them.

    A `;` in a string, a quoted name or a comment ends nothing. What follows the last `;` is
    returned as it is; it is empty if nothing but space and comments does.
    """
    statements: list[str] = []
    begin = 0
    blank = True
    for match in _TOKENS.finditer(text):
        kind = match.lastgroup
        value = match[0]
        if kind == "space":
            continue

        if value in ("'", '"', "`") or (value == "/" and text.startswith("/*", match.start())):
            return statements, text[begin:]  # not closed yet

        if value != ";":
            blank = False
            continue

        if not blank:
            statements.append(text[begin : match.start()].strip())

        begin = match.end()
        blank = True

    return statements, "" if blank else text[begin:]


def commits_in_parts(cypher: str) -> bool:
    """Whether the text has a subquery `IN TRANSACTIONS`, whose batches are committed one by one."""
    try:
        tokens = _tokens(cypher)
    except ReadOnlyError:
        return False  # the server's message is the best

    return bool(
        _BATCHES.search(
            " ".join(token.text for token in tokens if token.kind not in ("string", "quoted"))
        )
    )


def _readings(cypher: str) -> Iterator[str]:
    """Yield the text, and the text for a server that first replaces Unicode escapes."""
    yield cypher
    replaced = _UNICODE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), cypher)
    if replaced != cypher:
        yield replaced


def _tokens(text: str) -> list[Token]:
    tokens = []
    for match in _TOKENS.finditer(text):
        kind = str(match.lastgroup)
        value = match[0]
        if kind == "space":
            continue

        if value in ("'", '"', "`") or (value == "/" and text.startswith("/*", match.start())):
            where = _place(text, match.start())
            raise ReadOnlyError(
                f"the query has a string, a name or a comment that is not closed ({where})"
            )

        if kind == "word":
            # Servers normalise letters in different ways: the long s and the Kelvin sign may count
            # as S and K.
            value = unicodedata.normalize("NFKC", value).upper()

        tokens.append(Token(kind, value, match.start(), match[0]))

    return tokens


def _check_statement(text: str, tokens: list[Token]) -> None:
    if not tokens:
        raise ReadOnlyError("the query is empty")

    first = tokens[0]
    if first.text not in FIRST_WORDS and first.text not in ("(", "{"):
        if first.kind == "word" and first.text in COMMAND_WORDS:
            _refuse(text, first.at, "a query that only reads does not begin so")

        raise UnknownStatementError(
            f"syntax error: no query begins with {first.written:.40} ({_place(text, first.at)}); "
            "a query in Cypher begins with MATCH, RETURN, UNWIND, WITH or CALL"
        )

    for position, token in enumerate(tokens):
        if token.text == ";" and any(later.text != ";" for later in tokens[position + 1 :]):
            _refuse(text, token.at, "only one statement is allowed")


def _is_name(tokens: list[Token], position: int) -> bool:
    """Whether only a name can be here.

    Names are properties, labels, types, parameters, aliases and keys of maps.
    """
    before = tokens[position - 1].text if position else ""
    after = tokens[position + 1].text if position + 1 < len(tokens) else ""
    if before == "." and position > 1 and tokens[position - 2].kind == "number":
        return False  # `1.CREATE` may be a number and a clause

    # A variable may have the name `as`, so after AS only words that are harmless as a clause count
    # as names.
    alias = before == "AS" and tokens[position].text not in WRITING_WORDS | {"CALL"}
    return before in _BEFORE_A_NAME or alias or (before in ("{", ",", "(", "[") and after == ":")


def _check_word(text: str, tokens: list[Token], position: int) -> None:
    token = tokens[position]
    if token.text == "CALL":
        _check_call(text, tokens, position)
    elif token.text in WRITING_WORDS and not _lists_transactions(tokens, position):
        _refuse(text, token.at, f"{token.text} is not allowed")


def _lists_transactions(tokens: list[Token], position: int) -> bool:
    return (
        position == 1
        and tokens[0].text == "SHOW"
        and tokens[1].text in ("TRANSACTION", "TRANSACTIONS")
    )


def _check_call(text: str, tokens: list[Token], position: int) -> None:
    following = tokens[position + 1] if position + 1 < len(tokens) else None
    if following is None or following.text in ("{", "("):
        return  # a subquery; its clauses are checked one by one

    name = ".".join(_name_parts(tokens, position + 1))
    if name.lower() not in READING_PROCEDURES:
        _refuse(
            text,
            tokens[position].at,
            f"the procedure {name or following.text} is not known to be read-only",
        )


def _check_function(text: str, tokens: list[Token], position: int) -> None:
    """Check a call `a.b.c(…)` once, at its first part; procedures are checked at their CALL."""
    before = tokens[position - 1].text if position else ""
    if before in (".", "CALL"):
        return

    parts = _name_parts(tokens, position)
    name = ".".join(parts).lower()
    end = position + 2 * len(parts) - 1
    if end >= len(tokens) or tokens[end].text != "(":
        return

    space, dot, _ = name.partition(".")
    if (dot and space not in FUNCTION_SPACES) or name in OUTSIDE_FUNCTIONS:
        _refuse(text, tokens[position].at, f"the function {name} is not known to be harmless")


def _name_parts(tokens: list[Token], position: int) -> list[str]:
    """Return the parts of the name `a.b.c` that begins here, without quotes."""
    parts = []
    while position < len(tokens) and tokens[position].kind in ("word", "quoted"):
        token = tokens[position]
        parts.append(token.written.strip("`").replace("``", "`"))
        if position + 1 >= len(tokens) or tokens[position + 1].text != ".":
            break

        position += 2

    return parts


def _refuse(text: str, position: int, why: str) -> None:
    raise ReadOnlyError(
        f"this query could change the archive: {why} ({_place(text, position)}); "
        "allow it to write (--write, write=True), or put a name in backticks"
    )


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return f"line {line}, column {column}"
