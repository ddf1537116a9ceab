//! A library in JavaScript: it watches the tide.

use super::{Asked, Repository, ask};

pub fn repository() -> Repository {
    Repository { name: "js-library", files: FILES, commits: &[], asked: asked() }
}

const FILES: &[(&str, &str)] = &[
    (
        "package.json",
        r#"{
  "name": "tidewatch",
  "version": "2.1.0",
  "description": "Watches tide tables and warns before high water",
  "license": "ISC",
  "bin": { "tidewatch": "bin/tidewatch.js" },
  "scripts": { "test": "node --test test/" },
  "dependencies": { "undici": "^6.0.0" }
}
"#,
    ),
    (
        "README.md",
        r#"# tidewatch

> Never lose your dinghy again.

`tidewatch` polls the harbour office for tide tables and prints a warning when the water rises.

The minimum version of Node is 20.

## Usage

```js
import { watch } from 'tidewatch'
watch({ station: 'husum' })
```
"#,
    ),
    (
        "CHANGELOG.md",
        "# Changes\n\n## 2.1.0\n\n- Watches several stations.\n\n## 2.0.0\n\n- First release.\n",
    ),
    (
        "src/index.js",
        r#"/*
function example() {}
*/
import { fetchTable } from './fetch.js'

export const DEFAULT_INTERVAL = 15 * 60 * 1000

/**
 * Watches a station until `stop` is called.
 */
export async function watch(options) {
  const timer = setInterval(() => fetchTable(options.station), DEFAULT_INTERVAL)
  return { stop: () => clearInterval(timer) }
}
"#,
    ),
    (
        "src/fetch.js",
        r#"const MAX_RETRIES = 3

// Gets the table of a station; tries again when the office is busy.
export async function fetchTable(station, attempt = 0) {
  const response = await fetch(`https://tides.example.org/${station}`)
  return response.status === 503 && attempt < MAX_RETRIES ? fetchTable(station, attempt + 1) : response.json()
}
"#,
    ),
    (
        "bin/tidewatch.js",
        "#!/usr/bin/env node\nimport { watch } from '../src/index.js'\nwatch({ station: process.env.TIDE_STATION })\n",
    ),
    ("examples/husum.js", "import { watch } from 'tidewatch'\nwatch({ station: 'husum' })\n"),
    (
        "test/fetch.test.js",
        "import test from 'node:test'\nimport { fetchTable } from '../src/fetch.js'\n\ntest('asks the office', () => fetchTable('emden'))\n",
    ),
    (
        "LICENSE",
        "ISC License\n\nPermission to use, copy, modify and contribute is granted. The office, its \
         benchmarks and its warnings come without warranty.\n",
    ),
];

fn asked() -> Vec<Asked> {
    vec![
        // A motto is not what a project is.
        ask("what is this?")
            .says(&[
                "**tidewatch**: Watches tide tables and warns before high water.",
                "`README.md:5`",
                "polls the harbour office",
            ])
            .never(&["dinghy"]),
        ask("how do I use it?").says(&["## Usage", "import { watch } from 'tidewatch'"]),
        ask("which environment variables does it read?")
            .says(&["`bin/tidewatch.js:3`", "TIDE_STATION"]),
        ask("list the source files")
            .says(&["5 files", "`src/fetch.js`", "`bin/tidewatch.js`"])
            .never(&["README.md", "LICENSE", "package.json"]),
        ask("what examples are there?").says(&["`examples/husum.js`"]).never(&["src/index.js"]),
        // What stands in a comment is not defined.
        ask("how many functions are in src/index.js?").says(&["1 function in `src/index.js`"]),
        ask("what is in src/index.js?").says(&["function `watch`"]).never(&["`example`"]),
        // No manifest states it, but a document does.
        ask("which node version does it need?").says(&["The minimum version of Node is 20"]),
        // The text of a license says nothing about the project.
        ask("how can I contribute?")
            .says(&["I found nothing about *contribute*"])
            .never(&["`LICENSE"]),
        ask("does it have benchmarks?").says(&["I found nothing about *benchmarks*"]),
        ask("which tests cover stations?").says(&["I found nothing in tests about *stations*"]),
        ask("where is the tide table fetched?").says(&["By name: `src/fetch.js`."]),
        ask("what is the default interval?").says(&["`src/index.js:6`", "15 * 60 * 1000"]),
        ask("what is MAX_RETRIES").says(&["`src/fetch.js:1`"]).never(&["Gets the table"]),
        ask("what license does it have?").says(&["`license`: ISC", "ISC License"]),
        ask("show me src/fetch.js").says(&["const MAX_RETRIES = 3", "response.json()"]),
        ask("show me lines 3 to 4 of src/fetch.js")
            .says(&["`src/fetch.js:3`", "// Gets the table", "fetchTable(station"])
            .never(&["MAX_RETRIES"]),
        ask("find all console.log calls").says(&["I found no `console.log`"]).never(&["import"]),
        ask("what is 2+2?").says(&["I do not know what to search for"]),
        ask("explain this repo to a beginner").says(&["polls the harbour office"]),
        ask("make it faster").says(&["I cannot review, write, judge or fix"]),
        ask("what is tidewatch?").says(&["**tidewatch**: Watches tide tables"]),
        ask("what changed in version 2.1?")
            .says(&["`CHANGELOG.md:3`", "Watches several stations"])
            .never(&["First release"]),
        ask("who maintains this?").says(&["not in a git repository"]),
        ask("what is DEFAULT_INTERVAL used for?").says(&["`DEFAULT_INTERVAL` is a constant"]),
        ask("is it well tested?").says(&["I cannot"]).never(&["is tested"]),
    ]
}
