//! A Python package: a reader of feeds.

use super::{Asked, Repository, ask};

pub fn repository() -> Repository {
    Repository { name: "python-package", files: FILES, commits: &[], asked: asked() }
}

const FILES: &[(&str, &str)] = &[
    (
        "pyproject.toml",
        r#"[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "gleaner"
version = "1.7.0"
description = "Collects feeds and mails a digest every morning"
requires-python = ">=3.11"
license = "BSD-3-Clause"
dependencies = [
    "httpx>=0.27",
    "feedparser~=6.0",
    "jinja2",
]

[project.optional-dependencies]
dev = ["pytest>=8", "ruff"]

[project.scripts]
gleaner = "gleaner.cli:main"

[tool.pytest.ini_options]
testpaths = ["tests"]
"#,
    ),
    (
        "README.rst",
        r#"Gleaner
=======

Gleaner fetches feeds, drops what you have read before, and mails you the rest once a day.

Installation
------------

::

    pip install -e .[dev]

Usage
-----

::

    gleaner add https://example.org/feed.xml
    gleaner digest --to me@example.org
"#,
    ),
    (
        "src/gleaner/__init__.py",
        "\"\"\"Collects feeds and mails a digest.\"\"\"\n\n__version__ = \"1.7.0\"\n",
    ),
    (
        "src/gleaner/cli.py",
        r#""""The command line."""

import argparse

from gleaner.digest import compose_digest
from gleaner.store import ItemStore


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gleaner")
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", help="follow a feed")
    add.add_argument("url")
    digest = commands.add_parser("digest", help="mail what is new")
    digest.add_argument("--to", required=True)
    digest.add_argument("--dry-run", action="store_true")
    return parser


def main() -> int:
    arguments = build_parser().parse_args()
    store = ItemStore.open()
    if arguments.command == "digest":
        print(compose_digest(store.unread()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
"#,
    ),
    (
        "src/gleaner/fetch.py",
        r#""""Getting feeds over HTTP."""

import time

import httpx

MAX_ATTEMPTS = 4
USER_AGENT = "gleaner/1.7"


class FetchError(Exception):
    """A feed could not be had."""


def fetch_feed(url: str, client: httpx.Client) -> bytes:
    """Fetch a feed, trying again with growing pauses when the server is busy."""
    for attempt in range(MAX_ATTEMPTS):
        response = client.get(url, headers={"User-Agent": USER_AGENT})
        if response.status_code in (429, 503):
            time.sleep(backoff_seconds(attempt))
            continue
        if response.is_error:
            raise FetchError(f"{url}: {response.status_code}")
        return response.content
    raise FetchError(f"{url}: still busy after {MAX_ATTEMPTS} attempts")


def backoff_seconds(attempt: int) -> float:
    return min(60.0, 2.0**attempt)
"#,
    ),
    (
        "src/gleaner/store.py",
        r#""""What was seen before, in SQLite."""

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    guid TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    read_at INTEGER
);
"""


@dataclass
class Item:
    guid: str
    title: str
    link: str | None = None


class ItemStore:
    """Items by guid."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.executescript(SCHEMA)

    @classmethod
    def open(cls) -> "ItemStore":
        folder = Path(os.environ.get("GLEANER_HOME", "~/.gleaner")).expanduser()
        return cls(sqlite3.connect(folder / "items.db"))

    def mark_read(self, guid: str, now: int) -> None:
        self._connection.execute("UPDATE items SET read_at = ? WHERE guid = ?", (now, guid))

    def unread(self) -> list[Item]:
        rows = self._connection.execute("SELECT guid, title FROM items WHERE read_at IS NULL")
        return [Item(*row) for row in rows]
"#,
    ),
    (
        "src/gleaner/digest.py",
        r#""""Composing the mail."""

from jinja2 import Environment, PackageLoader

from gleaner.store import Item

# XXX: the limit should be a setting
MAX_ITEMS = 50


def compose_digest(items: list[Item]) -> str:
    """Render the newest items as plain text."""
    environment = Environment(loader=PackageLoader("gleaner"))
    template = environment.get_template("digest.txt")
    return template.render(items=items[:MAX_ITEMS], left_out=max(0, len(items) - MAX_ITEMS))


def strip_tracking(link: str) -> str:
    """Remove utm parameters from a link."""
    base, _, query = link.partition("?")
    kept = [part for part in query.split("&") if part and not part.startswith("utm_")]
    return base + ("?" + "&".join(kept) if kept else "")
"#,
    ),
    (
        "src/gleaner/templates/digest.txt",
        "{% for item in items %}\n* {{ item.title }}\n{% endfor %}\n{% if left_out %}and {{ left_out }} more{% endif %}\n",
    ),
    (
        "tests/test_fetch.py",
        r#"import httpx
import pytest

from gleaner.fetch import FetchError, backoff_seconds, fetch_feed


def test_backoff_is_capped():
    assert backoff_seconds(0) == 1.0
    assert backoff_seconds(50) == 60.0


def test_an_error_is_told():
    client = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(404)))
    with pytest.raises(FetchError):
        fetch_feed("https://example.org/feed.xml", client)
"#,
    ),
    (
        "tests/test_digest.py",
        r#"from gleaner.digest import strip_tracking


def test_tracking_parameters_are_removed():
    assert strip_tracking("https://a.b/c?utm_source=x&id=1") == "https://a.b/c?id=1"
"#,
    ),
    (
        "docs/configuration.md",
        r#"# Configuration

Gleaner reads `GLEANER_HOME`, the folder with its database. Without it, `~/.gleaner` is used.

## Mail

Set `GLEANER_SMTP` to the address of your mail server.
"#,
    ),
    (
        "LICENSE",
        "BSD 3-Clause License\n\nCopyright (c) the gleaners\n\nAny support is optional; mail is not.\n",
    ),
    ("requirements-docs.txt", "mkdocs==1.6\nmkdocs-material\n"),
];

fn asked() -> Vec<Asked> {
    vec![
        ask("what is this?").says(&[
            "**gleaner**: Collects feeds and mails a digest every morning. (`pyproject.toml:8`)",
            "`README.rst:4`",
        ]),
        ask("where is the class ItemStore").says(&[
            "`ItemStore` is a class, defined at `src/gleaner/store.py:24`",
            "> Items by guid.",
        ]),
        ask("Where's strip_tracking tested?")
            .says(&["`tests/test_digest.py:5` in `test_tracking_parameters_are_removed`"]),
        ask("explain fetch_feed")
            .says(&["defined at `src/gleaner/fetch.py:15`", "> Fetch a feed, trying again"]),
        // The docstring of the class below is not the constant's.
        ask("what is USER_AGENT?")
            .says(&["`USER_AGENT` is a constant, defined at `src/gleaner/fetch.py:8`"])
            .never(&["A feed could not be had"]),
        ask("Who uses compose_digest?").says(&["`src/gleaner/cli.py:"]).never(&["In tests"]),
        ask("how do I install this").says(&["`pip install -e .[dev]`", "`README.rst:11`"]),
        ask("what are the dependencies of this package")
            .says(&["`httpx` >=0.27", "`pyproject.toml:12`"]),
        ask("which python version does it need?").says(&["`requires-python` is >=3.11"]),
        ask("what license is it under")
            .says(&["BSD-3-Clause", "`LICENSE:1` has the text of the BSD 3-Clause License"]),
        ask("Wo ist backoff_seconds definiert?").says(&["defined at `src/gleaner/fetch.py:28`"]),
        ask("is there any support for OAuth?")
            .says(&["I found nothing about *oauth*"])
            .never(&["LICENSE"]),
        ask("which files mention mail?").says(&["files with *mail*", "`docs/configuration.md:1`"]),
        ask("what happens when the server is busy?").says(&["`src/gleaner/fetch.py:"]),
        ask("how many classes are there?").says(&["3 classes"]),
        ask("list all classes in src")
            .says(&["`class FetchError(Exception):`", "`src/gleaner/store.py:18`"]),
        ask("summarise src/gleaner/store.py")
            .says(&["class `ItemStore`", "What was seen before, in SQLite"]),
        ask("summarize the readme in 3 bullets").says(&["I cannot review, write, judge or fix"]),
        ask("List the tests").says(&["3 tests in 2 files", "`tests/test_fetch.py:1` (2)"]),
        ask("where is the text \"still busy after\" raised?")
            .says(&["is in 1 line", "`src/gleaner/fetch.py:25`"]),
        ask("explain this: `def main(): return foo()`")
            .says(&["I cannot explain text that comes with a question"])
            .never(&["cli.py"]),
    ]
}
