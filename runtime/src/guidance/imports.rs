//! Finds imports in Markdown: words `@path`, outside of code.

/// Returns the paths that `text` imports, each once, in order. They may be no imports at all, such as
/// `@name`: that shows when no such file exists.
pub(super) fn of(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in prose(text) {
        for word in words(&line) {
            if !found.contains(&word) {
                found.push(word);
            }
        }
    }
    found
}

/// Returns the lines of `text` outside of code blocks, with the code spans blanked out.
fn prose(text: &str) -> Vec<String> {
    let mut fence: Option<(char, usize)> = None;
    let (mut after_blank, mut in_list, mut in_code) = (true, false, false);
    let mut outside = String::new();
    for line in text.lines() {
        let inner = line.trim_start();
        let mark = fence_of(inner);
        match (fence, mark) {
            (Some((char, length)), Some((other, more, true)))
                if char == other && more >= length =>
            {
                fence = None;
                outside.push('\n');
                continue;
            }
            (Some(_), _) => continue,
            (None, Some((char, length, _))) => {
                fence = Some((char, length));
                outside.push('\n');
                continue;
            }
            (None, None) => {}
        }
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        in_code = !inner.is_empty() && is_indented && !in_list && (after_blank || in_code);
        after_blank = inner.is_empty();
        if !is_indented && !inner.is_empty() {
            in_list = is_item(inner) || in_list && line.starts_with(' ');
        }
        if !in_code {
            outside.push_str(line);
        }
        outside.push('\n');
    }
    without_spans(&outside).lines().map(str::to_owned).collect()
}

/// Returns the character and the length of the fence that `line` is, and whether it can end a block.
fn fence_of(line: &str) -> Option<(char, usize, bool)> {
    let char = line.chars().next().filter(|char| matches!(char, '`' | '~'))?;
    let length = line.chars().take_while(|it| *it == char).count();
    let rest = &line[length..];
    // A line with a whole code span is no fence.
    let is_fence = length >= 3 && !(char == '`' && rest.contains('`'));
    is_fence.then(|| (char, length, rest.trim().is_empty()))
}

fn is_item(line: &str) -> bool {
    let digits = line.trim_start_matches(|char: char| char.is_ascii_digit());
    let numbered =
        digits.len() < line.len() && (digits.starts_with(". ") || digits.starts_with(") "));
    numbered || ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark))
}

/// Returns `text` with a blank in place of each code span. A span ends at the next run of as many
/// backticks, within its paragraph.
fn without_spans(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let length = rest[at..].bytes().take_while(|byte| *byte == b'`').count();
        let (before, from) = (&rest[..at], &rest[at + length..]);
        plain.push_str(before);
        plain.push(' ');
        let paragraph = from.find("\n\n").unwrap_or(from.len());
        match end_of_span(&from[..paragraph], length) {
            Some(end) => {
                plain.extend(from[..end].matches('\n'));
                rest = &from[end..];
            }
            None => rest = from,
        }
    }
    plain.push_str(rest);
    plain
}

fn end_of_span(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let begin = at + found;
        let run = text[begin..].bytes().take_while(|byte| *byte == b'`').count();
        if run == length {
            return Some(begin + run);
        }
        at = begin + run;
    }
    None
}

/// Returns the paths in `line`: after an `@` that begins a word, up to a blank. A backslash keeps a
/// blank.
fn words(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = ' ';
    let mut rest = line;
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        if char == '@' && (before.is_whitespace() || "([\"'".contains(before)) {
            let (path, length) = path(rest);
            if !path.is_empty() {
                found.push(path);
            }
            rest = &rest[length..];
        }
        before = char;
    }
    found
}

fn path(text: &str) -> (String, usize) {
    let (mut path, mut length, mut escaped) = (String::new(), 0, false);
    for char in text.chars() {
        match char {
            '\\' if !escaped => escaped = true,
            char if char.is_whitespace() && !escaped => break,
            char => {
                if escaped && !char.is_whitespace() {
                    path.push('\\');
                }
                path.push(char);
                escaped = false;
            }
        }
        length += char.len_utf8();
    }
    (path, length)
}

/// Returns `path` without punctuation at its end, which ends a sentence; `None` if it has none.
pub(super) fn shorter(path: &str) -> Option<&str> {
    let shorter = path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'']);
    (shorter.len() < path.len() && !shorter.is_empty()).then_some(shorter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(of(text), expected, "{text}");
    }

    #[test]
    fn words_with_an_at_sign_are_imports_but_not_in_code() {
        check("See @README.md, and (@docs/a.md).", &["README.md,", "docs/a.md)."]);
        check(
            "@~/x.md @/abs @../up @a\\ b.md\n- @list.md",
            &["~/x.md", "/abs", "../up", "a b.md", "list.md"],
        );
        check("me@example.org a@b @@x @", &["@x"]);
        check("`@a` ``@b ` @c`` and @d `@e", &["d", "e"]);
        check("`open @a\nstill @b` @c", &["c"]);
        check("`one\n\n@two`", &["two"]);
        check("```\n@a\n```\n@b\n~~~ sh\n@c\n```\n@d\n~~~~\n@e", &["b", "e"]);
        check("````\n```\n@a\n````\n@b", &["b"]);
        check("```@a``` @b", &["b"]);
        check("text\n\n    @code\n\n    @more\n@prose", &["prose"]);
        check("- item\n\n    @nested\n\ntext\n    @lazy", &["nested", "lazy"]);
        check("```\nnever closed @a", &[]);
    }

    #[test]
    fn a_sentence_may_end_after_a_path() {
        assert_eq!((shorter("a.md)."), shorter("a.md"), shorter("..")), (Some("a.md"), None, None));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_searched(text in "[`~@ab./\\\\ \n\té-]{0,60}") {
            of(&text);
        }
    }
}
