//! Reads documents: sections, introductions, commands. It knows Markdown, the underlined headings
//! of reStructuredText, and plain text.

use crate::found::Page;
use crate::words;

/// A section of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub title: String,
    pub level: usize,
    /// The line of its heading; 1 for what stands before the first.
    pub line: usize,
    /// Its own lines, without those of sections below it.
    pub lines: Vec<(usize, String)>,
}

/// A command that a document names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub text: String,
    pub line: usize,
    /// The heading it stands below.
    pub section: String,
}

/// The sections of `page`, in order. The first has no title unless the document begins with one.
pub(crate) fn sections(page: &Page) -> Vec<Section> {
    let mut sections = vec![Section { title: String::new(), level: 0, line: 1, lines: Vec::new() }];
    let mut fenced = false;
    let front = front_matter(page);
    for (at, (line, text)) in page.texts().enumerate().skip(front) {
        let trimmed = text.trim_end();
        if trimmed.trim_start().starts_with("```") || trimmed.trim_start().starts_with("~~~") {
            fenced = !fenced;
        }
        let below = page.lines.get(at + 1).map_or("", |(_, text)| text.trim_end());
        let heading = if fenced { None } else { heading(trimmed, below) };
        match heading {
            Some((level, title)) => {
                sections.push(Section { title: title.to_owned(), level, line, lines: Vec::new() });
            }
            None if !fenced && is_underline(trimmed) => {}
            None => {
                if let Some(last) = sections.last_mut() {
                    last.lines.push((line, text.to_owned()));
                }
            }
        }
    }
    sections
}

/// How many lines of settings stand between `---` before the text begins.
fn front_matter(page: &Page) -> usize {
    let is_mark = |line: &(usize, String)| line.1.trim_end() == "---";
    if !page.lines.first().is_some_and(|line| line.0 == 1 && is_mark(line)) {
        return 0;
    }
    page.lines[1..].iter().position(is_mark).map_or(0, |end| end + 2)
}

fn heading<'t>(text: &'t str, below: &str) -> Option<(usize, &'t str)> {
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    if (1..=6).contains(&level) && rest.starts_with(' ') {
        return Some((level, rest.trim().trim_end_matches('#').trim_end()));
    }
    let underlined =
        is_underline(below) && below.len() >= text.len().min(3) && !text.trim().is_empty();
    let plain = underlined && !text.starts_with([' ', '-', '|', '>', '*']);
    plain.then_some((if below.starts_with('=') { 1 } else { 2 }, text.trim()))
}

fn is_underline(text: &str) -> bool {
    let mark = text.chars().next();
    text.len() >= 3
        && mark.is_some_and(|mark| "=-~^".contains(mark))
        && text.chars().all(|c| Some(c) == mark)
}

/// Paragraphs that are looked at for one that says what the project is.
const PARAGRAPHS: usize = 10;

/// Titles of sections that say what a project is.
const ABOUT: &str = "about overview introduction description what why summary";

/// The name of the document, and the paragraph that says what it is about, with its line: one
/// that begins like "Name is a …", or the first before other sections begin. What stands in
/// sections such as "Usage" does not say what a project is.
pub(crate) fn beginning(page: &Page, names: &[&str]) -> (Option<String>, Option<(String, usize)>) {
    let sections = sections(page);
    let is_title =
        |section: &&Section| section.level == 1 && !section.title.starts_with(['[', '!', '<']);
    let title = sections.iter().find(is_title).and_then(|section| prose(&section.title));
    let all: Vec<(String, usize)> = sections.iter().flat_map(paragraphs).take(PARAGRAPHS).collect();
    let opens = |section: &&Section| {
        let first = section.title.to_lowercase();
        let first = first.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        section.level < 2 || words::has(ABOUT, first)
    };
    // A paragraph is better than a motto in a quotation.
    let quoted = |line: usize| {
        page.texts().any(|(number, text)| number == line && text.trim_start().starts_with('>'))
    };
    let mut openings: Vec<(String, usize)> =
        sections.iter().filter(opens).flat_map(paragraphs).take(PARAGRAPHS).collect();
    openings.sort_by_key(|(_, line)| quoted(*line));
    let opening = openings.into_iter().next();
    let known: Vec<String> =
        names.iter().copied().chain(title.as_deref()).map(str::to_lowercase).collect();
    let explains = |text: &str| {
        let start: String =
            text.to_lowercase().chars().filter(|c| !"*_`\"".contains(*c)).take(60).collect();
        known.iter().any(|name| {
            let verbs = [" is ", " are ", " provides ", " lets ", " allows "];
            verbs.iter().any(|verb| start.contains(&format!("{name}{verb}")))
        })
    };
    let chosen = all.into_iter().find(|(text, _)| explains(text)).or(opening);
    (title, chosen)
}

/// The paragraphs of prose in a section, each with its line.
fn paragraphs(section: &Section) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut paragraph: Vec<String> = Vec::new();
    let mut first = 0;
    let mut fenced = false;
    let end = (0, String::new());
    for (line, text) in section.lines.iter().chain([&end]) {
        let trimmed = text.trim();
        let fence = trimmed.starts_with("```");
        fenced ^= fence;
        let mut said = if fenced || fence { None } else { prose(trimmed) };
        // A link at the beginning of a line may well go on a sentence.
        if said.is_none()
            && !paragraph.is_empty()
            && trimmed.starts_with('[')
            && !trimmed.starts_with("[!")
        {
            said = Some(without_links(trimmed).0);
        }
        match said {
            Some(said) => {
                first = if paragraph.is_empty() { *line } else { first };
                paragraph.push(said);
            }
            None => {
                let text = paragraph.join(" ");
                paragraph.clear();
                let is_sentence = text.ends_with('.') && text.split_whitespace().count() > 2;
                if text.len() >= 25 || is_sentence {
                    found.push((text, first));
                }
            }
        }
    }
    found
}

/// What a line of a document says, without badges, pictures and tags; `None` when it says nothing.
fn prose(line: &str) -> Option<String> {
    let bare = ["[![", "![", "|", ".. ", "::", "---", "===", ":", "[//]"]
        .iter()
        .any(|start| line.starts_with(start));
    let names_link = line.starts_with('[') && line.contains("]: ");
    if bare || names_link || line.is_empty() {
        return None;
    }
    let line = without_links(line);
    // The rest of a badge that began on the line above.
    if line.0.contains("](http") {
        return None;
    }
    let mut out = String::new();
    let mut depth = 0_usize;
    for character in line.0.chars() {
        match character {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => out.push(character),
            _ => {}
        }
    }
    let out = out.trim().trim_start_matches("> ").to_owned();
    // A line of links is a menu.
    let said = out.chars().filter(|c| c.is_alphabetic()).count();
    (said > 2 && line.1 * 10 < said * 8).then_some(out)
}

/// `[text](target)` as `text`, and how many letters were text of links.
fn without_links(line: &str) -> (String, usize) {
    let mut out = String::new();
    let mut linked = 0;
    let mut rest = line;
    while let Some(open) = rest.find('[') {
        let link = rest[open + 1..]
            .split_once("](")
            .and_then(|(text, after)| Some((text, after.split_once(')')?.1)));
        match link.filter(|(text, _)| !text.contains('[')) {
            Some((text, after)) => {
                out.push_str(rest[..open].trim_end_matches('!'));
                out.push_str(text);
                linked += text.chars().filter(|c| c.is_alphabetic()).count();
                rest = after;
            }
            None => {
                out.push_str(&rest[..=open]);
                rest = &rest[open + 1..];
            }
        }
    }
    out.push_str(rest);
    (out, linked)
}

/// The commands in `page`: lines of fenced and indented blocks, and code within sentences.
pub(crate) fn commands(page: &Page) -> Vec<Command> {
    let mut found = Vec::new();
    let markdown = !page.path.ends_with(".rst");
    for section in sections(page) {
        let mut fence: Option<bool> = None;
        // What is indented below `::` is code; elsewhere it may be the rest of a sentence.
        let mut literal = false;
        for (line, text) in &section.lines {
            let trimmed = text.trim();
            if let Some(info) = trimmed.strip_prefix("```") {
                // Only blocks of a shell, or of nothing in particular, hold commands.
                let shell = "sh bash shell console zsh text terminal shell-session sh-session";
                let info = info.trim();
                let shell = info.is_empty() || words::has(shell, info);
                fence = if fence.is_some() { None } else { Some(shell) };
                continue;
            }
            let indented = text.starts_with("    ") || text.starts_with('\t');
            if !trimmed.is_empty() && !indented {
                literal = trimmed.ends_with("::");
            }
            let command = |text: &str| Command {
                text: text.to_owned(),
                line: *line,
                section: section.title.clone(),
            };
            match fence {
                Some(true) => found.extend(block_command(trimmed).map(command)),
                Some(false) => {}
                None if indented => {
                    let is_one =
                        |text: &&str| literal || is_command(text) || trimmed.starts_with("$ ");
                    found.extend(block_command(trimmed).filter(is_one).map(command));
                }
                None if markdown => {
                    let spans = trimmed.split('`').skip(1).step_by(2);
                    found.extend(spans.filter(|span| is_command(span)).map(command));
                }
                None => {}
            }
        }
    }
    found
}

/// A line of a block without its prompt, if it is a command.
fn block_command(text: &str) -> Option<&str> {
    let text = text.strip_prefix("$ ").or(text.strip_prefix("> ")).unwrap_or(text);
    let begins = text.starts_with(|first: char| {
        first.is_ascii_lowercase() || first == '.' || first.is_ascii_uppercase()
    });
    let odd = text.starts_with('#') || text.contains("...") && text.len() < 6;
    // What follows two blanks and a hash is a remark.
    let text = text.split("  #").next().unwrap_or(text).trim_end();
    (begins && !odd && text.len() <= 200).then_some(text)
}

/// Programs that a command in a sentence may begin with.
const PROGRAMS: &str = "make cargo npm npx pnpm yarn bun deno node pip pipx python python3 pytest \
    tox nox poetry uv go mvn gradle gradlew cmake ctest meson ninja rake bundle ruby gem rails \
    docker docker-compose podman just task brew apt mix dotnet swift composer php bazel";

fn is_command(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let known = words::has(PROGRAMS, first.trim_start_matches("./"));
    let alone = !text.contains(' ') && !matches!(first, "make" | "tox" | "pytest" | "ctest");
    known && !alone || first.starts_with("./") && !first.ends_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_prose_and_no_badge() {
        let text = "<p align=\"center\"><img src=\"x\"></p>\n\n[![b](c)](d)\n\n# Name\n\nA booking page for\nsmall restaurants.\n\nMore.";
        let (title, first) = beginning(&Page::of("README.md", text), &[]);
        assert_eq!(title.as_deref(), Some("Name"));
        assert_eq!(first, Some(("A booking page for small restaurants.".to_owned(), 7)));
        let (title, first) = beginning(
            &Page::of("README.rst", "Gleaner\n=======\n\nFetches feeds for you every day."),
            &[],
        );
        assert_eq!(title.as_deref(), Some("Gleaner"));
        assert_eq!(first.map(|(_, line)| line), Some(4));
    }

    #[test]
    fn the_paragraph_that_explains_comes_before_others() {
        let text = "# X\n\nBuy our shirts, mugs and stickers now!\n\n`fzf` is a fuzzy finder,\n[fast](x) and small.";
        let (_, first) = beginning(&Page::of("README.md", text), &["fzf"]);
        assert_eq!(first, Some(("`fzf` is a fuzzy finder, fast and small.".to_owned(), 5)));
    }

    #[test]
    fn commands_are_found_where_documents_put_them() {
        let text = "# A\n## Build\n```sh\n# first\n$ make all\n```\nRun `make check` or `x`.\n\n    ./run --now\n```rust\nlet a = 1;\n```\n";
        let found = commands(&Page::of("README.md", text));
        let texts: Vec<(&str, usize)> =
            found.iter().map(|command| (&*command.text, command.line)).collect();
        assert_eq!(texts, [("make all", 5), ("make check", 7), ("./run --now", 9)]);
        assert_eq!(found[0].section, "Build");
    }

    #[test]
    fn sections_hold_their_own_lines() {
        let (_, first) = beginning(
            &Page::of("a.md", "---\nname: x\n---\n# A\n\nWords that say what it is."),
            &[],
        );
        assert_eq!(first.map(|(_, line)| line), Some(6));
        let found =
            sections(&Page::of("a.md", "intro\n# One\na\n## Two\n```\n# no heading\n```\n"));
        let titles: Vec<(&str, usize, usize)> =
            found.iter().map(|s| (&*s.title, s.level, s.lines.len())).collect();
        assert_eq!(titles, [("", 0, 1), ("One", 1, 1), ("Two", 2, 3)]);
    }
}
