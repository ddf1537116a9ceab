//! A Python package: a reader of feeds.

use super::{Asked, Repository, nothing, place};

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
    ("LICENSE", "BSD 3-Clause License\n\nCopyright (c) the gleaners\n"),
    ("requirements-docs.txt", "mkdocs==1.6\nmkdocs-material\n"),
];

fn asked() -> Vec<Asked> {
    vec![
        Asked::new(
            "where is the class ItemStore",
            [place("src/gleaner/store.py", "class ItemStore")],
        ),
        Asked::new(
            "Where's strip_tracking tested?",
            [
                place("tests/test_digest.py", "strip_tracking"),
                place("tests/test_digest.py", "def test_tracking"),
            ],
        ),
        Asked::new("explain fetch_feed", [place("src/gleaner/fetch.py", "def fetch_feed")]),
        Asked::new("what happens when a server is busy?", [place("src/gleaner/fetch.py", "")]),
        Asked::new(
            "how do I install this",
            [
                place("README.rst", "pip install"),
                place("README.rst", "Installation"),
                place("pyproject.toml", ""),
            ],
        ),
        Asked::new("Who uses compose_digest?", [place("src/gleaner/cli.py", "compose_digest")]),
        Asked::new("what are the dependencies of this package", [place("pyproject.toml", "")]),
        Asked::new(
            "which environment variables does it read?",
            [
                place("src/gleaner/store.py", "GLEANER_HOME"),
                place("docs/configuration.md", "GLEANER_HOME"),
            ],
        ),
        Asked::new(
            "What is this project about",
            [place("README.rst", ""), place("pyproject.toml", "description")],
        ),
        Asked::new(
            "where does the program start?",
            [
                place("src/gleaner/cli.py", "def main"),
                place("src/gleaner/cli.py", "__main__"),
                place("pyproject.toml", "gleaner.cli:main"),
            ],
        ),
        Asked::new(
            "find files about mail",
            [place("docs/configuration.md", ""), place("src/gleaner/digest.py", "")],
        ),
        Asked::new(
            "what license is it under",
            [place("LICENSE", ""), place("pyproject.toml", "license")],
        ),
        Asked::new("give me a summary of store.py", [place("src/gleaner/store.py", "")]),
        Asked::new(
            "Wo ist backoff_seconds definiert?",
            [place("src/gleaner/fetch.py", "def backoff_seconds")],
        ),
        Asked::new("is there any support for OAuth?", [nothing("OAuth")]),
        Asked::new(
            "where is the items table created",
            [
                place("src/gleaner/store.py", "CREATE TABLE"),
                place("src/gleaner/store.py", "SCHEMA"),
            ],
        ),
    ]
}
