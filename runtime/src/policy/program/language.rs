//! Programs of sed and awk that only turn text into text. In doubt, a program may do more.

use crate::policy::shell::Word;

/// Returns why these arguments of sed may do more than print; `None` if they only print. A rule spells out the first
/// `said` of them, and accepts a script among those.
pub(super) fn sed(arguments: &[Word], said: usize) -> Option<&'static str> {
    const MORE: &str = "what sed does beyond printing";
    let mut script = None;
    let mut arguments = arguments.iter().enumerate();
    while let Some((at, word)) = arguments.next() {
        let Word::Exact(text) = word else {
            match (script, word) {
                // Files by pattern, after the script.
                (Some(()), Word::Begins(_) | Word::Partly { .. }) => continue,
                _ => return Some(MORE),
            }
        };
        match text.as_str() {
            "-e" | "-ne" => match arguments.next() {
                Some((at, Word::Exact(code))) if at < said || only_prints(code) => {
                    script = Some(());
                }
                _ => return Some(MORE),
            },
            "-i" | "--in-place" if at < said => {}
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "--quiet" | "--silent" | "-nE" | "-nr"
            | "-En" => {}
            option if option.starts_with('-') && option != "-" => return Some(MORE),
            code if script.is_none() => match at < said || only_prints(code) {
                true => script = Some(()),
                false => return Some(MORE),
            },
            _ => {}
        }
    }
    None
}

/// True when a script of sed consists of addresses with `p`, `d`, `q`, `=`, and of `s/a/b/` with flags that only print.
fn only_prints(code: &str) -> bool {
    let simple = |part: &str| {
        let part = part.trim();
        if let Some(rest) = part.strip_prefix("s/") {
            let mut pieces = rest.split('/');
            let plain = |piece: Option<&str>| piece.is_some_and(|it| !it.contains(['\n', '\\']));
            let (pattern, new) = (plain(pieces.next()), plain(pieces.next()));
            let flags = pieces.next().unwrap_or("x");
            let harmless = flags.chars().all(|flag| flag.is_ascii_digit() || "gpiI".contains(flag));
            return pattern && new && harmless && pieces.next().is_none();
        }
        let Some(address) = part.strip_suffix(['p', 'd', 'q', '=']) else { return false };
        let number = |text: &str| text == "$" || text.bytes().all(|byte| byte.is_ascii_digit());
        let words = |text: &str| {
            let inner = text.strip_prefix('/').and_then(|text| text.strip_suffix('/'));
            let fine = |char: char| char.is_alphanumeric() || " _-.:^$*()=\"'#<>".contains(char);
            inner.is_some_and(|inner| inner.chars().all(fine))
        };
        let one = |text: &str| number(text) || words(text);
        match address.split_once(',') {
            Some((first, last)) => one(first) && one(last.trim_start_matches(['+', '~'])),
            None => one(address),
        }
    };
    !code.is_empty() && code.split(';').all(simple)
}

/// Returns why these arguments of awk may do more than print; `None` if they only print. A rule spells out the first
/// `said` of them, and accepts a program among those.
pub(super) fn awk(arguments: &[Word], said: usize) -> Option<&'static str> {
    const WORDS: [&str; 4] = ["system", "getline", "close", "fflush"];
    let risky = |code: &str| {
        code.contains(['|', '>', '@', '\\']) || WORDS.iter().any(|word| code.contains(word))
    };
    awk_with(arguments, said, risky)
}

/// True when awk with these arguments may run another program.
pub(super) fn awk_runs(arguments: &[Word]) -> bool {
    awk_with(arguments, 0, |code| awk_calls(code).is_none()).is_some()
}

/// Returns `None` when an awk program has a pipe, calls `system`, loads something, or cannot be parsed. It skips texts
/// and patterns, if their ends are certain.
fn awk_calls(code: &str) -> Option<()> {
    // After these characters a pattern may come but no number: there `/` does not divide.
    const OPENING: &str = "{}([,;!~&|=<>+-*%^$?:\n";
    let mut chars = code.chars().peekable();
    let mut before = '\n';
    while let Some(char) = chars.next() {
        match char {
            '"' => loop {
                match chars.next()? {
                    '\\' => drop(chars.next()),
                    '"' => break,
                    '\n' => return None,
                    _ => {}
                }
            },
            '#' => while chars.next_if(|it| *it != '\n').is_some() {},
            '/' if OPENING.contains(before) => {
                let mut in_class = false;
                loop {
                    match chars.next()? {
                        '\\' => drop(chars.next()),
                        // Some versions take `[/]` for a class, others for the end of the pattern.
                        '/' if in_class => return None,
                        '/' => break,
                        '[' => in_class = true,
                        ']' => in_class = false,
                        '\n' => return None,
                        _ => {}
                    }
                }
            }
            // After a number, a text or an element it divides. After anything else, such as a word or the `)` of an
            // `if`, it may be a division or a pattern.
            '/' if !(before.is_ascii_digit() || "]\".".contains(before)) => {
                let rest: String = chars.clone().collect();
                if rest.contains(['/', '"']) {
                    return None;
                }
            }
            '|' => {
                chars.next_if_eq(&'|')?;
            }
            '@' | '\\' => return None,
            _ => {}
        }
        // Two of these are one operator, after which it may be a division or a pattern.
        before = match char {
            '+' | '-' if before == char => '_',
            ' ' | '\t' => before,
            char => char,
        };
    }
    let is_word =
        |at: usize| !code[..at].ends_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
    let mut calls = code.match_indices("system").filter(|(at, _)| is_word(*at));
    calls.next().is_none().then_some(())
}

fn awk_with(arguments: &[Word], said: usize, risky: impl Fn(&str) -> bool) -> Option<&'static str> {
    const MORE: &str = "what awk does beyond printing";
    let mut program = None;
    let mut arguments = arguments.iter().enumerate();
    while let Some((at, word)) = arguments.next() {
        let Some(text) = word.code().filter(|_| word.exact().is_some() || !word.may_be_option())
        else {
            match program {
                // These are files, or variables for the program.
                Some(()) => continue,
                None => return Some(MORE),
            }
        };
        match text {
            "-F" | "-v" => match arguments.next() {
                Some((_, Word::Unknown)) | None => return Some(MORE),
                Some(_) => {}
            },
            option if option.starts_with("-F") && program.is_none() => {}
            option if option.starts_with('-') && program.is_none() => return Some(MORE),
            code if program.is_none() => {
                if risky(code) && at >= said {
                    return Some(MORE);
                }
                program = Some(());
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(arguments: &[&str]) -> Vec<Word> {
        arguments.iter().map(|text| Word::Exact((*text).to_owned())).collect()
    }

    #[test]
    fn a23_sed_that_only_prints_is_told_from_sed_that_does_more() {
        for fine in [
            &["-n", "1,5p", "a.txt"][..],
            &["-n", "/fn main/,/end/p", "a.rs"],
            &["s/a/b/g", "x"],
            &["-E", "-e", "s/a+/b/", "x"],
            &["$d", "x"],
        ] {
            assert_eq!(sed(&words(fine), 0), None, "{fine:?}");
        }
        for more in [
            &["-n", "1e touch x", "a"][..],
            &["s|x|touch y|e"],
            &["s/x/y/e"],
            &["s/x/y/w out"],
            &["-i", "s/a/b/", "x"],
            &["-ni", "p", "x"],
            &["-f", "evil.sed", "x"],
            &["w out", "x"],
            &["1r /etc/passwd", "x"],
            &["p;w out"],
            &["p\ne touch x"],
            &["--in-place", "p", "x"],
            &["p", "a", "-i"],
            &["s/a/b\\\n/;w x"],
        ] {
            assert!(sed(&words(more), 0).is_some(), "{more:?}");
        }
    }

    #[test]
    fn awk_whose_patterns_may_hide_a_pipe_counts_as_running_programs() {
        for hidden in ["$", "a[", "2^", "if(1)", "for(;i<1;i++)", "x\r", "print ", "a++ "] {
            let code = format!("BEGIN{{x={hidden}/\"/; \"touch x\" | getline; y={hidden}/\"/}}");
            assert!(awk_runs(&words(&[&code])), "{code:?}");
            let code = format!("BEGIN{{{hidden}/\"/; \"touch x\" | getline; {hidden}/\"/}}");
            assert!(awk_runs(&words(&[&code])), "{code:?}");
        }
        for plain in ["{print $1/2 \"x\"}", "$2 ~ /\"x|y\"/ {n[$1]/=2}", "/a|b/ || $1 == \"|\""] {
            assert!(!awk_runs(&words(&[plain])), "{plain:?}");
        }
    }

    #[test]
    fn awk_that_only_prints_is_told_from_awk_that_does_more() {
        for fine in [&["{print $1}", "a"][..], &["-F:", "{print $1}"], &["-F", ",", "NR==1", "x"]] {
            assert_eq!(awk(&words(fine), 0), None, "{fine:?}");
        }
        for more in [
            &["BEGIN{print \"x\" | \"cat > y\"}"][..],
            &["BEGIN{\"touch x\"|getline}"],
            &["BEGIN{system(\"x\")}"],
            &["{print > \"f\"}"],
            &["-f", "x.awk"],
            &["-i", "inplace", "{print}"],
            &["@load \"x\"; {print}"],
            &["--load=x", "{print}"],
        ] {
            assert!(awk(&words(more), 0).is_some(), "{more:?}");
        }
    }
}
