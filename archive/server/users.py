"""Users of the embedded server: `root`, which may do everything, and `reader`, which may read.

ArcadeDB reads both from its configuration folder when it starts, and enforces the permissions for
every client. Each has a random password in a file of its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from pathlib import Path
from typing import Any

from archive.files import write_atomically
from archive.server.run_file import DATABASE, READER, USER, Folder

_ALGORITHM = "PBKDF2WithHmacSHA256"
_ITERATIONS = 65_536
_SALT_BYTES = 32
_HASH_BYTES = 32

_ALL_RECORDS = ["createRecord", "readRecord", "updateRecord", "deleteRecord"]
_WHOLE_DATABASE = ["updateSecurity", "updateSchema", "updateDatabaseSettings"]


def ensure_users(folder: Folder) -> None:
    """Create the passwords, the users and their groups unless they exist; a changed password file
    changes a password.

    Raises:
        OSError: A file cannot be written.
    """
    passwords = {USER: folder.password, READER: folder.reader_password}
    for path in passwords.values():
        if not path.exists():
            write_atomically(path, secrets.token_urlsafe(32))

    changed = max(path.stat().st_mtime for path in passwords.values())
    users = folder.config / "server-users.jsonl"
    if (
        not users.exists()
        or users.stat().st_mtime < changed
        or READER not in users.read_text(encoding="utf-8")
    ):
        groups = {USER: {"*": ["admin"]}, READER: {DATABASE: [READER]}}
        lines = [_user(name, groups[name], path) for name, path in passwords.items()]
        write_atomically(users, "".join(f"{line}\n" for line in lines))

    _ensure_groups(folder.config / "server-groups.json")


def _user(name: str, groups: dict[str, list[str]], password: Path) -> str:
    salt = base64.b64encode(secrets.token_bytes(_SALT_BYTES)).decode()
    secret = password.read_text(encoding="utf-8").strip().encode()
    digest = hashlib.pbkdf2_hmac("sha256", secret, salt.encode(), _ITERATIONS, _HASH_BYTES)
    stored = "$".join([_ALGORITHM, str(_ITERATIONS), salt, base64.b64encode(digest).decode()])
    return json.dumps({"name": name, "databases": groups, "password": stored})


def _ensure_groups(path: Path) -> None:
    """Add the group of readers to the groups of ArcadeDB."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        groups = content["databases"]["*"]["groups"]
    except (OSError, ValueError, KeyError, TypeError):
        # As ArcadeDB itself would create them.
        groups = {"admin": _group(_WHOLE_DATABASE, _ALL_RECORDS), "*": _group([], [])}
        content = {"databases": {"*": {"groups": groups}}, "version": 2}

    reader = _group([], ["readRecord"])
    if groups.get(READER) != reader:
        groups[READER] = reader
        write_atomically(path, json.dumps(content, indent=2))


def _group(database: list[str], records: list[str]) -> dict[str, Any]:
    types = {"*": {"access": records}}
    return {"resultSetLimit": -1, "readTimeout": -1, "access": database, "types": types}
