"""Source files at the start of a run, and the difference of two such states.

A state is the digest of each source file below a folder. In a git repository these are the tracked
files and those that git does not ignore; elsewhere the files below the folder of the program.
A digest is the name of git's blob, so that a file without changes is not even read.

    commit       the commit that is checked out, its branch, and whether files differ from it
    files        path -> digest, of source files alone: a changed picture or log is no other program
    digest       of all of them: two runs with one digest ran the same code

The texts of files that git has not stored are kept in a folder of blobs, each once, compressed.
Files of submodules count as files of the repository around them.

Limits (`MOST_FILES`, `MOST_FILE_BYTES`, `MOST_BYTES`) hold whatever lies in the folder; what they
leave out is counted. A file that is too large has its size as its digest, so that a change of it is
named.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archive.files import write_atomically
from archive.queries.tried.differences import count_lines, split_files
from archive.runs.secrets import Secrets

SUFFIXES = frozenset(
    ".py .pyx .pyi .ipynb .c .cc .cpp .cu .cuh .h .hpp .rs .go .java .kt .scala .jl .r .m .lua .js "
    ".ts .sh .toml .yaml .yml .json .cfg .ini .conf .gin".split()
)
"""Ends of the names of source files: programs and their settings."""

MOST_FILES = 5_000
MOST_FILE_BYTES = 1 << 20
MOST_BYTES = 32 << 20
MOST_SUBMODULES = 32
MOST_DIFF = 1 << 16
"""Longest difference that is kept, in letters."""

_LARGE = "large-"
"""Begin of the digest of a file whose text is not read; its size follows."""

GIT_SECONDS = 10.0
"""Time after which git is given up; a repository on a slow disk must not stop a run."""

GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false")
"""Begin of a command that writes no index, and runs no program of the repository's settings."""

_SKIPPED_FOLDERS = frozenset(
    ["__pycache__", "node_modules", "venv", "site-packages", "wandb", "mlruns", "runs"]
)


@dataclass(frozen=True)
class CodeState:
    """Source files of a program at one moment.

    Attributes:
        folder: The folder that paths are relative to: top of the repository, or the program's.
        files: Digest of each source file by its path.
        commit: The commit that is checked out; None without a repository or a commit.
        branch: Its branch; None where there is none.
        committed: Digests in that commit, of the files that differ from it.
        omitted: Number of files that the limits leave out.
    """

    folder: Path
    files: Mapping[str, str]
    commit: str | None = None
    branch: str | None = None
    committed: Mapping[str, str] = field(default_factory=dict)
    omitted: int = 0

    @property
    def digest(self) -> str:
        """Digest of all files: 12 hexadecimal digits."""
        total = hashlib.sha1(usedforsecurity=False)
        for path in sorted(self.files):
            total.update(f"{path}\0{self.files[path]}\n".encode(errors="surrogateescape"))

        return total.hexdigest()[:12]

    def json(self) -> dict[str, Any]:
        """Return the state as a JSON object."""
        return {**vars(self), "folder": str(self.folder)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> CodeState:
        """Return the state of a JSON object."""
        return cls(**{**document, "folder": Path(document["folder"])})


@dataclass(frozen=True)
class FileChange:
    """The change of one file.

    Attributes:
        path: Its path.
        added: Number of added lines.
        removed: Number of removed lines.
        text: The change as lines of a unified difference.
        is_large: Whether the file is too large for its lines to be kept.
    """

    path: str
    added: int
    removed: int
    text: str
    is_large: bool = False

    def __str__(self) -> str:
        """Return the change on one line, `train.py +3 -1`."""
        if self.is_large:
            return f"{self.path} (large)"

        return f"{self.path} +{self.added} -{self.removed}"


class BlobFolder:
    """Texts of source files by their digests, each kept once.

    Args:
        folder: Where they are kept; made when the first is written.
    """

    def __init__(self, folder: Path) -> None:
        """Keep the folder."""
        self._folder = folder

    def write(self, digest: str, content: bytes) -> None:
        """Keep a text."""
        path = self._path(digest)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, zlib.compress(content, 1))

    def read(self, digest: str) -> bytes | None:
        """Return a text; None where it is not kept."""
        with suppress(OSError, zlib.error):
            return zlib.decompress(self._path(digest).read_bytes())

        return None

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest[2:]


def committed_repository(folder: Path) -> Path | None:
    """Return the git repository around a folder; None without one, and without a commit."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None or _git(folder, "rev-parse", "--verify", "--quiet", "HEAD") is None:
        return None

    return Path(os.fsdecode(top).rstrip("\n"))


def read_state(folder: Path, blobs: BlobFolder) -> CodeState:
    """Return the state of the source files around a folder, and keep the texts that git lacks.

    Args:
        folder: Folder in which the program runs.
        blobs: Where texts are kept.
    """
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        return _state_without_git(folder, blobs)

    return _state_of_repository(Path(os.fsdecode(top).rstrip("\n")), blobs)


def changes_of(before: CodeState, after: CodeState, blobs: BlobFolder) -> list[FileChange]:
    """Return the changes from one state to another, by path.

    A file whose text is nowhere any more counts as changed, with no lines.
    """
    changes = []
    for path in sorted({*before.files, *after.files}):
        old = before.files.get(path)
        new = after.files.get(path)
        if old == new:
            continue

        if _is_large(old) or _is_large(new):
            text = f"{path}: {_size_in_words(old)} -> {_size_in_words(new)}, lines are not kept\n"
            changes.append(FileChange(path, 0, 0, text, is_large=True))
            continue

        old_text = _text_of(before, path, old, blobs)
        new_text = _text_of(after, path, new, blobs)
        changes.append(_change(path, old_text, new_text))

    return changes


def uncommitted(state: CodeState, blobs: BlobFolder) -> list[FileChange]:
    """Return the changes since the commit that is checked out; none without a repository."""
    files = {path: digest for path, digest in state.files.items() if path not in state.committed}
    if state.commit is None:
        return []

    committed = {path: digest for path, digest in state.committed.items() if digest}
    before = CodeState(state.folder, {**files, **committed})
    return changes_of(before, state, blobs)


def told_changes(diff: str) -> list[FileChange]:
    """Return the changes of a unified difference of files, in their order."""
    changes = []
    for path, text in split_files(diff).items():
        added, removed = count_lines(text)
        changes.append(FileChange(path or "?", added, removed, text))

    return changes


def difference_text(changes: list[FileChange], secrets: Secrets) -> str:
    """Return changes as one text of at most `MOST_DIFF` letters; a line says what is left out.

    Args:
        changes: The changes.
        secrets: What is masked, before the text is cut.
    """
    parts = []
    length = 0
    for position, change in enumerate(changes):
        text = secrets.mask(change.text)
        if length + len(text) > MOST_DIFF:
            parts.append(text[: MOST_DIFF - length])
            parts.append(f"\n… {len(changes) - position} of {len(changes)} files are cut\n")
            break

        parts.append(text)
        length += len(text)

    return "".join(parts)


def _is_large(digest: str | None) -> bool:
    return digest is not None and digest.startswith(_LARGE)


def _size_in_words(digest: str | None) -> str:
    if not digest:
        return "absent"

    if not _is_large(digest):
        return "small"

    return f"{int(digest.removeprefix(_LARGE)) / (1 << 20):.1f} MiB"


def _state_of_repository(top: Path, blobs: BlobFolder) -> CodeState:
    committed = _listed(_git(top, "ls-tree", "-r", "-z", "HEAD"))
    index = _git(top, "ls-files", "-s", "-z")
    files: dict[str, str] = {}
    changed: dict[str, str] = {}
    total = 0
    omitted = 0
    for path, digest in _listed(index).items():
        if _is_source(path):
            files[path] = digest

    touched = _paths(_git(top, "diff-files", "--name-only", "-z"))
    touched += _paths(_git(top, "ls-files", "--others", "--exclude-standard", "-z"))
    for path in touched:
        if not _is_source(path):
            continue

        content = _read_source(top / path, MOST_BYTES - total)
        if content is None:
            files.pop(path, None)
            omitted += os.path.exists(top / path)
            size = _large_size(top / path)
            if size is not None:
                files[path] = f"{_LARGE}{size}"

            continue

        total += len(content)
        files[path] = blob_digest(content)
        blobs.write(files[path], content)

    for path in {*files, *committed}:
        if _is_source(path) and files.get(path) != committed.get(path):
            changed[path] = committed.get(path, "")

    for module in _submodules(index)[:MOST_SUBMODULES]:
        # A link in place of a submodule may lead back to the repository around it.
        is_link = os.path.realpath(top / module) != os.path.join(os.path.realpath(top), module)
        if is_link or not (top / module / ".git").exists():
            continue

        inner = _state_of_repository(top / module, blobs)
        omitted += inner.omitted
        files |= {f"{module}/{path}": digest for path, digest in inner.files.items()}
        changed |= {f"{module}/{path}": digest for path, digest in inner.committed.items()}

    if len(files) > MOST_FILES:
        omitted += len(files) - MOST_FILES
        files = dict(sorted(files.items())[:MOST_FILES])
        changed = {path: digest for path, digest in changed.items() if path in files}

    branch = _git(top, "symbolic-ref", "--short", "-q", "HEAD")
    commit = _git(top, "rev-parse", "-q", "--verify", "HEAD")
    return CodeState(top, files, _word(commit), _word(branch), changed, omitted)


def _state_without_git(folder: Path, blobs: BlobFolder) -> CodeState:
    files: dict[str, str] = {}
    total = 0
    omitted = 0
    for path in _walk(folder):
        content = None
        name = path.relative_to(folder).as_posix()
        if len(files) < MOST_FILES:
            content = _read_source(path, MOST_BYTES - total)

        if content is None:
            omitted += 1
            size = _large_size(path) if len(files) < MOST_FILES else None
            if size is not None:
                files[name] = f"{_LARGE}{size}"

            continue

        total += len(content)
        files[name] = blob_digest(content)
        blobs.write(files[name], content)

    return CodeState(folder, files, omitted=omitted)


def _walk(folder: Path) -> Iterator[Path]:
    """Yield source files below a folder, without folders of packages and hidden ones."""
    seen = 0
    for root, folders, names in os.walk(folder):
        kept = []
        for name in sorted(folders):
            is_environment = os.path.exists(os.path.join(root, name, "pyvenv.cfg"))
            if not name.startswith(".") and name not in _SKIPPED_FOLDERS and not is_environment:
                kept.append(name)

        folders[:] = kept
        seen += len(names)
        for name in sorted(names):
            if _is_source(name):
                yield Path(root) / name

        # A folder such as the user's home holds no program.
        if seen > 20 * MOST_FILES:
            return


def blob_digest(content: bytes) -> str:
    """Return the digest of a file's content, as git names its blob."""
    header = f"blob {len(content)}\0".encode()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def _read_source(path: Path, most: int) -> bytes | None:
    """Return the content of a source file within the limits; None for any other."""
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > min(most, MOST_FILE_BYTES):
            return None

        content = path.read_bytes()
    except OSError:
        return None

    return None if b"\0" in content[:8192] else content


def _large_size(path: Path) -> int | None:
    """Return the size of a regular file that is too large to be read; None for any other."""
    with suppress(OSError):
        about = path.lstat()
        if stat.S_ISREG(about.st_mode) and about.st_size > MOST_FILE_BYTES:
            return about.st_size

    return None


def _is_source(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in SUFFIXES


def _text_of(state: CodeState, path: str, digest: str | None, blobs: BlobFolder) -> str:
    """Return the text of a file of a state; empty where it is nowhere."""
    if not digest:
        return ""

    content = blobs.read(digest)
    if content is None:
        # Below a submodule, git reads that repository.
        content = _git((state.folder / path).parent, "cat-file", "blob", digest)

    if content is None:
        content = _git(state.folder, "cat-file", "blob", digest)

    return "" if content is None else content[:MOST_FILE_BYTES].decode(errors="replace")


def _change(path: str, old: str, new: str) -> FileChange:
    lines = list(
        difflib.unified_diff(
            old.splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", n=2, lineterm=""
        )
    )
    added = 0
    removed = 0
    for line in lines[2:]:
        added += line.startswith("+")
        removed += line.startswith("-")

    return FileChange(path, added, removed, "".join(f"{line}\n" for line in lines))


def _listed(output: bytes | None) -> dict[str, str]:
    """Return path and digest of each file in the output of `ls-tree` and `ls-files -s`."""
    files = {}
    for entry in (output or b"").split(b"\0"):
        about, tab, path = entry.partition(b"\t")
        if tab:
            words = about.split()
            # MODE DIGEST STAGE, or MODE TYPE DIGEST; a submodule has the mode 160000.
            digest = words[2] if words[1] in (b"blob", b"commit") else words[1]
            if words[0] != b"160000":
                files[os.fsdecode(path)] = digest.decode()

    return files


def _submodules(index: bytes | None) -> list[str]:
    """Return the paths of the submodules in the output of `ls-files -s`."""
    modules = []
    for entry in (index or b"").split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if about.startswith(b"160000"):
            modules.append(os.fsdecode(path))

    return modules


def _paths(output: bytes | None) -> list[str]:
    return [os.fsdecode(path) for path in (output or b"").split(b"\0") if path]


def _word(output: bytes | None) -> str | None:
    return None if output is None else output.decode(errors="replace").strip() or None


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return the output of git in a folder; None where it fails, or is missing."""
    command = [*GIT, *arguments]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=GIT_SECONDS,
            check=True,
        )
        return done.stdout

    return None
