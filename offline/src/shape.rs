//! The structure of code on a page: where a definition ends, its comment, what encloses a line, and
//! which lines are tests. It uses indentation and marks, not a grammar.

use crate::definition::{self, Definition, Kind};
use crate::found::Page;
use crate::language::{self, Language};
use crate::question::Name;
use crate::words;
use std::ops::Range;

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The last line of the definition that begins at `first`, showing at most `most` lines.
pub(crate) fn end_of_definition(page: &Page, first: usize, most: usize) -> usize {
    let Some(start) = page.position(first) else { return first };
    let language = language::of(&page.path);
    let opening = page.lines[start].1.as_str();
    let own = indent(opening);
    let heading =
        definition::definition(language, opening).is_some_and(|found| found.kind == Kind::Heading);
    let mut last = first;
    if opening.trim_end().ends_with(';') {
        return first;
    }
    for (number, line) in page.lines[start + 1..].iter().take(most.saturating_sub(1)) {
        let text = line.trim();
        if heading {
            if definition::definition(language, line)
                .is_some_and(|found| found.kind == Kind::Heading)
            {
                break;
            }
        } else if !text.is_empty() && indent(line) <= own {
            let closes =
                text.starts_with(['}', ')', ']']) || text == "end" || text.starts_with("end ");
            let opens = closes && text.len() > 1 && text.ends_with(['{', ':', '>'])
                || text == "{"
                || language == Language::C && text.starts_with('{')
                || text.starts_with("where");
            if closes {
                last = *number;
            }
            if !opens {
                break;
            }
        } else if text.is_empty() && opening.trim_end().ends_with([';', ',']) {
            break;
        }
        if !text.is_empty() {
            last = *number;
        }
    }
    last
}

/// Which lines of a page are in a long comment or in a text of Python, where definitions are
/// examples. Unknown for a page that does not begin at the start of its file.
pub(crate) fn aside(page: &Page) -> Vec<bool> {
    let python = language::of(&page.path) == Language::Python;
    let known = page.lines.first().is_some_and(|(number, _)| *number == 1);
    let mut until: Option<&str> = None;
    let inside = |text: &str| {
        let text = text.trim();
        if let Some(mark) = until {
            until = until.filter(|_| !text.contains(mark));
            return true;
        }
        let opens = ["\"\"\"", "'''"].into_iter().find(|mark| python && text.contains(mark));
        match opens {
            Some(mark) if text.matches(mark).count() % 2 == 1 => until = Some(mark),
            None if !python && text.starts_with("/*") && !text.contains("*/") => {
                until = Some("*/");
            }
            _ => return false,
        }
        text.starts_with("/*") || is_quote(text.trim_start_matches(['r', 'u', 'b']))
    };
    match known {
        true => page.lines.iter().map(|(_, text)| text.as_str()).map(inside).collect(),
        false => vec![false; page.lines.len()],
    }
}

/// What the comment at a definition says: right above it, or in its own docstring.
pub(crate) fn documentation(page: &Page, line: usize) -> Option<String> {
    let at = page.position(line)?;
    let language = language::of(&page.path);
    if language == Language::Markdown {
        return None;
    }
    let mut above: Vec<&str> = Vec::new();
    let mut inside = false;
    // A comment that begins above the page cannot be quoted from its beginning.
    let mut whole = page.lines.first().is_some_and(|(number, _)| *number == 1);
    for (_, text) in page.lines[..at].iter().rev() {
        let text = text.trim();
        if text.ends_with("*/") && !text.contains("/*") {
            inside = true;
        }
        let begins = inside && text.starts_with("/*");
        let said = if inside { Some(without_marks(text)) } else { comment(text) };
        inside &= !begins;
        match said {
            Some(said) => above.push(said),
            None if is_attribute(text) => {}
            None => {
                whole = true;
                break;
            }
        }
    }
    if !whole && !above.is_empty() {
        return None;
    }
    above.reverse();
    if above.iter().all(|line| line.is_empty()) {
        let lines = &page.lines[docstring(page, at)];
        above = lines.iter().map(|(_, text)| without_quotes(text)).collect();
    }
    let said = above.into_iter().skip_while(|line| line.is_empty());
    let paragraph: Vec<&str> =
        said.take_while(|line| !line.is_empty() && !line.starts_with(['@', ':'])).collect();
    let text = paragraph.join(" ");
    let says = text.chars().filter(|c| c.is_alphabetic()).count() > 3;
    says.then(|| words::shortened(&text, 400))
}

fn is_attribute(text: &str) -> bool {
    text.starts_with("#[") || text.starts_with('@') || text.starts_with("template")
}

/// What a line of comment says.
pub(crate) fn comment(text: &str) -> Option<&str> {
    let text = text.trim();
    let marks = ["//", "/*", "*/", "--", "# ", "* "];
    let marked = marks.iter().any(|mark| text.starts_with(mark)) || matches!(text, "#" | "*");
    marked.then(|| without_marks(text))
}

fn without_marks(text: &str) -> &str {
    let text = text.trim_start_matches(['/', '*', '!', '#', '-']).trim();
    text.trim_end_matches("*/").trim()
}

fn without_quotes(text: &str) -> &str {
    let text = text.trim();
    let text = text.strip_prefix(['r', 'u', 'b']).filter(|rest| is_quote(rest)).unwrap_or(text);
    let mark = if text.contains("'''") && !text.contains("\"\"\"") { "'''" } else { "\"\"\"" };
    text.trim_start_matches(mark).trim_end_matches(mark).trim()
}

fn is_quote(text: &str) -> bool {
    text.starts_with("\"\"\"") || text.starts_with("'''")
}

/// Where the docstring of a function or class of Python stands, as positions in `page.lines`;
/// nowhere if there is none. A constant has none, whatever follows it.
pub(crate) fn docstring(page: &Page, at: usize) -> Range<usize> {
    if language::of(&page.path) != Language::Python {
        return 0..0;
    }
    let first = page.lines[at].1.trim_start();
    let head = ["def ", "async def ", "class "].iter().any(|start| first.starts_with(start));
    let mut depth = 0_i32;
    let mut ends = None;
    for (below, (_, text)) in page.lines[at..].iter().enumerate().take(40) {
        let code = text.split(" #").next().unwrap_or_default().trim_end();
        depth += code.matches(['(', '[', '{']).count() as i32;
        depth -= code.matches([')', ']', '}']).count() as i32;
        if depth <= 0 {
            ends = code.ends_with(':').then_some(at + below + 1);
            break;
        }
    }
    let Some(first) = ends.filter(|_| head) else { return 0..0 };
    let Some((_, open)) = page.lines.get(first) else { return 0..0 };
    let open = open.trim().trim_start_matches(['r', 'u', 'b']);
    if !is_quote(open) {
        return 0..0;
    }
    let mark = &open[..3];
    if open[3..].contains(mark) {
        return first..first + 1;
    }
    let close = page.lines[first + 1..].iter().position(|(_, text)| text.contains(mark));
    first..close.map_or(page.lines.len(), |close| first + close + 2)
}

/// What encloses a line, from the inside out: definitions that begin above it, are indented less
/// than all between, and have not ended.
fn enclosing<'p>(page: &'p Page, line: usize) -> impl Iterator<Item = (usize, Definition<'p>)> {
    let language = language::of(&page.path);
    let at = page.position(line);
    let mut least = at.map_or(0, |at| indent(&page.lines[at].1));
    let above = &page.lines[..at.unwrap_or(0)];
    above.iter().rev().filter_map(move |(number, text)| {
        let plain = text.trim();
        // A signature that goes on below ends at the indentation it began with.
        let passing = plain.is_empty() || plain.starts_with(['#', ')', '/', '*']);
        if passing || indent(text) >= least {
            return None;
        }
        least = indent(text);
        definition::definition(language, text).map(|found| (*number, found))
    })
}

/// Whether a line stands inside what is called `owner`: a class, an `impl`, a module, a receiver.
pub(crate) fn is_inside(page: &Page, line: usize, owner: &str) -> bool {
    let Some(at) = page.position(line) else { return false };
    let owner = Name::plain(owner);
    let own = &page.lines[at].1;
    let receiver = own.trim_start().strip_prefix("func (").and_then(|rest| rest.split(')').next());
    let mut least = indent(own);
    let outer = page.lines[..at].iter().rev().filter(|(_, text)| {
        let outside = !text.trim().is_empty() && indent(text) < least;
        least = if outside { indent(text) } else { least };
        outside
    });
    let heads = outer.map(|(_, text)| text.as_str()).filter(|text| {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        words.any(|word| {
            words::has("class impl struct trait interface enum mod module object", word)
        })
    });
    heads.chain(receiver).any(|head| owner.stands_in(head))
}

/// The function, type or module that encloses a line, if that is certain.
pub(crate) fn around(page: &Page, line: usize) -> Option<(usize, Kind, &str)> {
    if !language::is_code(&page.path) {
        return None;
    }
    let mut all = enclosing(page, line).filter(|(_, found)| found.kind.is_major());
    all.next().map(|(number, found)| (number, found.kind, found.name))
}

/// Whether a line of Rust on `page` belongs to a test: it is inside a module under `#[cfg(test)]`
/// or a function marked as a test. `mod tests;` says nothing about what follows it.
pub(crate) fn is_test(page: &Page, line: usize) -> bool {
    if language::of(&page.path) != Language::Rust {
        return false;
    }
    let marked = |number: usize| {
        let Some(at) = page.position(number) else { return false };
        let above = page.lines[..at].iter().rev().map(|(_, text)| text.trim());
        let mut marks = above.take_while(|text| text.starts_with("#[") || comment(text).is_some());
        marks.any(|text| {
            text.starts_with("#[cfg(test)")
                || text.starts_with("#[cfg(all(test")
                || text.starts_with("#[test]")
                || text.starts_with("#[") && text.contains("::test")
        })
    };
    marked(line) || enclosing(page, line).any(|(number, _)| marked(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_end_where_they_end() {
        let rust = Page::of("a.rs", "fn a() {\n    1\n}\n\nfn b() {}");
        assert_eq!(end_of_definition(&rust, 1, 10), 3);
        let c = Page::of("a.c", "int a(void)\n{\n    return 1;\n}\nint b;");
        assert_eq!(end_of_definition(&c, 1, 10), 4);
        let python = Page::of("a.py", "def a():\n    x\n\n    y\n\ndef b():\n    z");
        assert_eq!(end_of_definition(&python, 1, 10), 4);
        let text = Page::of("a.md", "# A\n\nword\n\n## B");
        assert_eq!(end_of_definition(&text, 1, 10), 3);
        let declared = Page::of("a.rs", "trait T {\n    fn a();\n}\n");
        assert_eq!(end_of_definition(&declared, 2, 10), 2);
        let wide = Page::of("a.rs", "fn a(\n    x: u8,\n) -> u8 {\n    x\n}\n\nfn b() {}");
        assert_eq!(end_of_definition(&wide, 1, 10), 5);
    }

    #[track_caller]
    fn says(path: &str, line: usize, text: &str, expected: Option<&str>) {
        assert_eq!(documentation(&Page::of(path, text), line).as_deref(), expected, "{text}");
    }

    #[test]
    fn a_definition_has_its_own_comment_and_no_other() {
        says(
            "a.rs",
            5,
            "/// Does it.\n/// Twice.\n///\n#[inline]\nfn a() {}",
            Some("Does it. Twice."),
        );
        says("a.py", 1, "def a(\n    x,\n):\n    \"\"\"Does it.\"\"\"\n", Some("Does it."));
        says("a.py", 1, "A = 1\nclass B:\n    \"\"\"Of the class.\"\"\"\n", None);
        says("a.py", 1, "A = x(\n    1,\n)\n\nclass B(C):\n    \"\"\"Of B.\"\"\"\n", None);
        says("a.ts", 4, "/**\n * Does it.\n */\nfunction a() {", Some("Does it."));
        says("a.c", 4, "/* Does it\n   well. */\n\nint a(void)", None);
        says("a.c", 3, "/* Does it\n   well. */\nint a(void)", Some("Does it well."));
        says("a.c", 2, "int a;\nint b;", None);
    }

    #[test]
    fn a_comment_that_begins_above_the_page_is_not_quoted() {
        let mut page = Page::of("a.rs", "/// One.\n///\n/// Two.\nfn a() {}");
        page.lines.remove(0);
        page.lines.remove(0);
        assert_eq!(documentation(&page, 4), None);
    }

    #[test]
    fn examples_in_comments_are_aside() {
        let marked = |path: &str, text: &str| -> Vec<usize> {
            let marks = aside(&Page::of(path, text)).into_iter().enumerate();
            marks.filter(|(_, aside)| *aside).map(|(at, _)| at + 1).collect()
        };
        assert_eq!(marked("a.rs", "/*!\nfn a() {}\n*/\nfn b() {}\n/* c */\nfn d() {}"), [1, 2, 3]);
        let python = "\"\"\"Text.\n\nThe = 1\n\"\"\"\nA = \"\"\"\nB = 1\n\"\"\"\nC = 1\n\"\"\"D.\"\"\"\nE = 2";
        assert_eq!(marked("a.py", python), [1, 2, 3, 4, 6, 7]);
    }

    #[test]
    fn what_encloses_a_line_is_told_by_indentation() {
        let page = Page::of(
            "a.rs",
            "const K: u8 = 1;\nfn a() {\n    x();\n}\n// b\nimpl T {\n    fn c(\n        d: u8,\n    ) {\n        y();\n    }\n}\n",
        );
        let name = |line| around(&page, line).map(|(_, _, name)| name);
        assert_eq!((name(3), name(5), name(10)), (Some("a"), None, Some("c")));
    }

    #[test]
    fn tests_are_told_by_their_marks() {
        let page = Page::of(
            "a.rs",
            "#[cfg(test)]\nmod tests;\nfn a() {\n    b();\n}\n#[tokio::test]\nasync fn c() {\n    a();\n}\nfn d() {\n    a();\n}\n#[cfg(test)]\nmod more {\n    fn e() {\n        a();\n    }\n}\n",
        );
        let tests: Vec<usize> = [4, 8, 11, 16].into_iter().filter(|l| is_test(&page, *l)).collect();
        assert_eq!(tests, [8, 16]);
    }
}
