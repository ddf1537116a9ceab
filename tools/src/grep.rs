//! The tool Grep: finds lines or files that match a regular expression, with ripgrep's own engine.

use crate::arguments::{Arguments, spec};
use crate::blocking;
use crate::built_in::BuiltIn;
use crate::failure::{Failure, PathError, answer};
use crate::path_rules::Usage;
use crate::pattern::Pattern;
use crate::run_path::{RunFiles, RunPath};
use crate::walk::{self, Files};
use async_trait::async_trait;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::types::{Types, TypesBuilder};
use posse_agent::{Answer, Tool, ToolContext};
use posse_protocol::{About, Effect, ToolOutput, ToolSpec};
use results::{Found, Results};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, LazyLock};
use tokio_util::sync::CancellationToken;

mod results;

/// The default number of entries in a result.
const ENTRIES: usize = 250;
/// The maximum memory of a compiled expression, and of its cache.
const REGEX_BYTES: usize = 10 << 20;
/// The maximum memory for one line; in multiline searches, for one file.
const SEARCH_BYTES: usize = 32 << 20;
/// The maximum number of context lines on each side.
const CONTEXT_LINES: usize = 100;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    spec(
        "Grep",
        "Searches file contents by regular expression, as ripgrep does. Lists files unless \
         output_mode says otherwise.",
        Effect::Read,
        json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string"},
                "path": {"type": "string", "description": "file or folder"},
                "glob": {"type": "string"},
                "type": {"type": "string", "description": "rust, py…"},
                "output_mode": {
                    "type": "string",
                    "enum": ["files_with_matches", "content", "count"],
                },
                "-i": {"type": "boolean"},
                "-n": {"type": "boolean", "description": "default true"},
                "-A": {"type": "integer"},
                "-B": {"type": "integer"},
                "-C": {"type": "integer"},
                "multiline": {"type": "boolean"},
                "head_limit": {"type": "integer", "minimum": 1, "description": "default 250"},
            },
            "required": ["pattern"],
        }),
    )
    .about(About::Tree("path".into()))
    .shown("{pattern} in {path}")
    .aliases(&["grep", "search", "rg", "ripgrep", "search_files", "grep_search", "SearchText"])
});

pub(crate) const TOOL: BuiltIn =
    BuiltIn { spec: &SPEC, make: |run| Some(Arc::new(Grep { files: run.files(&SPEC.name) })) };

pub(crate) struct Grep {
    pub files: Arc<RunFiles>,
}

#[async_trait]
impl Tool for Grep {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        let files = self.files.clone();
        let search = move |cancel: &CancellationToken| grep(&files, input, cancel);
        answer(blocking::interruptible(context, search).await)
    }
}

/// What a result lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Files,
    Content,
    Count,
}

fn grep(
    files: &Arc<RunFiles>,
    input: Value,
    cancel: &CancellationToken,
) -> Result<ToolOutput, Failure> {
    let arguments = Arguments::check(&SPEC, input)?;
    let mode = match arguments.optional_text("output_mode") {
        Some("content") => Mode::Content,
        Some("count") => Mode::Count,
        _ => Mode::Files,
    };
    let mut search = Search {
        matcher: matcher(&arguments)?,
        searcher: searcher(&arguments, mode),
        mode,
        results: Results::new(arguments.count("head_limit").unwrap_or(ENTRIES)),
        skipped: 0,
        cancel,
    };
    let glob = arguments.optional_text("glob").map(|glob| Pattern::parse(files, glob));
    let glob = glob.transpose()?;
    let types = arguments.optional_text("type").map(file_types).transpose()?;
    let place = walk::start(files, arguments.optional_text("path"), glob.as_ref())?;
    match place.open_file(Usage::Read) {
        Ok((file, _)) => {
            search.file(&place, file);
        }
        Err(PathError::Folder { .. }) => {
            let folder = walk::folder(&place)?;
            for path in Files::below(&folder, types, cancel)? {
                if glob.as_ref().is_some_and(|glob| !glob.wants(&folder, &path)) {
                    continue;
                }
                // The walk is not trusted: the file is opened beneath the handle.
                let place = folder.found(path);
                let Ok((file, _)) = place.open_file(Usage::Read) else { continue };
                if !search.file(&place, file) {
                    break;
                }
            }
        }
        Err(error) => return Err(error.into()),
    }
    if cancel.is_cancelled() {
        return Err(blocking::cancelled());
    }
    Ok(ToolOutput::text(search.results.finish(search.skipped)))
}

struct Search<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    mode: Mode,
    results: Results,
    /// Files that were not searched to their end, because a line is too long for memory.
    skipped: usize,
    cancel: &'a CancellationToken,
}

impl Search<'_> {
    /// Searches one file. Returns false if there is no room for more results.
    fn file(&mut self, place: &RunPath, file: File) -> bool {
        let reader = Interruptible { file, cancel: self.cancel };
        let path = place.show();
        let mut found = Found::new(&path, self.mode, &mut self.results);
        let searched = self.searcher.search_reader(&self.matcher, reader, &mut found);
        found.finish();
        if searched.is_err() {
            self.skipped += 1;
        }
        !self.results.is_full() && !self.cancel.is_cancelled()
    }
}

/// Ends a search in the middle of a large file if the call is cancelled.
struct Interruptible<'a> {
    file: File,
    cancel: &'a CancellationToken,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}

fn matcher(arguments: &Arguments) -> Result<RegexMatcher, Failure> {
    let multiline = arguments.flag("multiline") == Some(true);
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .case_insensitive(arguments.flag("-i") == Some(true))
        .dot_matches_new_line(multiline)
        .size_limit(REGEX_BYTES)
        .dfa_size_limit(REGEX_BYTES);
    if !multiline {
        // Lets `$` match before either line end. The searcher needs the same setting.
        builder.crlf(true);
    }
    builder.build(arguments.text("pattern")).map_err(|error| {
        Failure(format!(
            "Grep: `pattern` must be a regular expression in Rust syntax (escape literal \
             brackets and dots; set multiline to match \\n): {error}"
        ))
    })
}

fn searcher(arguments: &Arguments, mode: Mode) -> Searcher {
    let multiline = arguments.flag("multiline") == Some(true);
    let mut builder = SearcherBuilder::new();
    if !multiline {
        builder.line_terminator(LineTerminator::crlf());
    }
    builder
        .line_number(arguments.flag("-n") != Some(false))
        .multi_line(multiline)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(SEARCH_BYTES));
    if mode == Mode::Content {
        let around = arguments.count("-C").unwrap_or(0);
        let side = |name| arguments.count(name).unwrap_or(around).min(CONTEXT_LINES);
        builder.after_context(side("-A")).before_context(side("-B"));
    }
    builder.build()
}

fn file_types(name: &str) -> Result<Types, Failure> {
    // Names that people use and ripgrep does not.
    let name = match name {
        "rs" => "rust",
        "javascript" => "js",
        "typescript" | "tsx" => "ts",
        "python" => "py",
        other => other,
    };
    let mut builder = TypesBuilder::new();
    builder.add_defaults().select(name);
    builder.build().map_err(|_| {
        Failure(format!(
            "Grep: `type` must be a file type such as rust, py, js, ts, go, java, md, not \
             {name:?}; use glob for others"
        ))
    })
}
