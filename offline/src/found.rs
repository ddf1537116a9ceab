//! Parses the text of tool results. Lines in an unknown form are left out.

/// A line that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub path: String,
    pub line: usize,
    pub text: String,
}

/// Results of one kind, and whether there are more than these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Results<T> {
    pub list: Vec<T>,
    pub cut: bool,
}

impl<T> Default for Results<T> {
    fn default() -> Self {
        Results { list: Vec::new(), cut: false }
    }
}

pub(crate) type Hits = Results<Hit>;
pub(crate) type Names = Results<String>;
pub(crate) type Counts = Results<(String, u64)>;

/// A stretch of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub path: String,
    pub lines: Vec<(usize, String)>,
    /// The file goes on.
    pub more: bool,
}

impl Page {
    /// A whole file.
    #[cfg(test)]
    pub fn of(path: &str, text: &str) -> Self {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect();
        Page { path: path.to_owned(), lines, more: false }
    }

    /// The position in `lines` of the line with this number.
    pub fn position(&self, number: usize) -> Option<usize> {
        let first = self.lines.first()?.0;
        let position = number.checked_sub(first)?;
        (self.lines.get(position)?.0 == number).then_some(position)
    }

    pub fn texts(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines.iter().map(|(number, text)| (*number, text.as_str()))
    }
}

/// Lines of the form `path:12:text`.
pub(crate) fn hits(text: &str) -> Hits {
    let list = text.lines().filter_map(hit).collect();
    Results { list, cut: is_cut(text) }
}

fn hit(line: &str) -> Option<Hit> {
    if is_note(line) {
        return None;
    }
    for (at, _) in line.match_indices(':') {
        let rest = &line[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if (1..=9).contains(&digits) && rest[digits..].starts_with(':') {
            let text = rest[digits + 1..].to_owned();
            return Some(Hit {
                path: line[..at].to_owned(),
                line: rest[..digits].parse().ok()?,
                text,
            });
        }
    }
    None
}

/// One name a line.
pub(crate) fn names(text: &str) -> Names {
    if text.starts_with("No match.") || text.starts_with("No file matches.") {
        return Names::default();
    }
    let is_name = |line: &&str| !line.is_empty() && !is_note(line);
    let list = text.lines().filter(is_name).map(str::to_owned).collect();
    Results { list, cut: is_cut(text) }
}

/// Lines of the form `path:12`.
pub(crate) fn counts(text: &str) -> Counts {
    let count = |line: &str| {
        let (path, count) = line.rsplit_once(':')?;
        Some((path.to_owned(), count.parse().ok()?))
    };
    let list = text.lines().filter(|line| !is_note(line)).filter_map(count).collect();
    Results { list, cut: is_cut(text) }
}

/// Lines of the form `    12<tab>text`.
pub(crate) fn page(path: &str, text: &str) -> Page {
    let numbered = |line: &str| {
        let (number, rest) = line.split_once('\t')?;
        Some((number.trim().parse().ok()?, rest.to_owned()))
    };
    let lines = text.lines().filter_map(numbered).collect();
    let more = text.lines().next_back().is_some_and(|last| last.contains("Read on with offset="));
    Page { path: path.to_owned(), lines, more }
}

/// A remark of the tool about its result.
fn is_note(line: &str) -> bool {
    line.starts_with("[The ") || line.ends_with("]") && line.contains("could not be searched")
}

fn is_cut(text: &str) -> bool {
    text.lines().rev().take(3).any(|line| line.starts_with("[The first "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_search_are_read_with_odd_paths_and_texts() {
        let text = "a/b.rs:12:fn x() {}\nodd:name.c:3:a:1:b\n--\n[The first 2 entries. There are more: raise head_limit.]\n";
        let found = hits(text);
        let seen: Vec<_> =
            found.list.iter().map(|hit| (&*hit.path, hit.line, &*hit.text)).collect();
        assert_eq!(seen, [("a/b.rs", 12, "fn x() {}"), ("odd:name.c", 3, "a:1:b")]);
        assert!(found.cut);
    }

    #[test]
    fn what_says_that_there_is_nothing_is_nothing() {
        assert_eq!(
            hits("No match. (Ignored and binary files are not searched.)\n"),
            Hits::default()
        );
        assert_eq!(names("No file matches. (Ignored files are not looked at.)"), Names::default());
        assert_eq!(
            counts("No match. (Ignored and binary files are not searched.)"),
            Counts::default()
        );
    }

    #[test]
    fn a_page_knows_its_lines_and_whether_the_file_goes_on() {
        let page = page(
            "x",
            "    41\tone\n    42\ttwo\ttabs\n[Lines 41-42 of 90. Read on with offset=43.]\n",
        );
        assert_eq!(page.lines, [(41, "one".to_owned()), (42, "two\ttabs".to_owned())]);
        assert!(page.more);
        assert_eq!(
            (page.position(42), page.position(40), page.position(43)),
            (Some(1), None, None)
        );
    }
}
