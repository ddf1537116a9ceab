//! Rules about shell commands: `git diff:*`, `npm run test *`, `make check`. They are compared word
//! by word with the parsed command, never with its text.

use super::program::{
    Runs, base, command_name, leaves_too_much_open, may_mean, other_spellings, runs, without_places,
};
use super::reach::{Part, collect, collect_setting};
use super::shell::{Script, Word};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The pattern of a rule for a simple command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    /// The words that it spells out.
    words: Vec<Piece>,
    end: End,
}

/// A word of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Word(String),
    /// A word with `*` in it: the texts between the stars.
    Pattern(Vec<String>),
    /// `*` by itself: any words.
    Words,
}

/// What may follow the words of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Nothing,
    Anything,
}

/// Whether a rule matches a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    No,
    Yes,
    /// Unknown, for this reason.
    Maybe(&'static str),
}

impl CommandPattern {
    /// Parses the text in the parentheses of a rule.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (text, mut end) = match text.strip_suffix(":*") {
            Some(text) => (text, End::Anything),
            None => (text, End::Nothing),
        };
        let mut words = pieces(text)?;
        while end == End::Nothing && words.last() == Some(&Piece::Words) {
            words.pop();
            end = End::Anything;
        }
        match words.first() {
            Some(Piece::Word(name)) if name.contains('=') => {
                Err("it sets a variable, which no rule can allow; begin with the program")
            }
            Some(Piece::Word(name)) if !name.is_ascii() => {
                Err("a program's name has letters that look like others")
            }
            Some(_) => Ok(CommandPattern { words, end }),
            None => Err("it names no command; for all commands, write Bash"),
        }
    }

    /// Returns the program that it names; `None` if it names none, like `* --force`. Such a pattern
    /// can refuse, but never allow.
    pub(crate) fn program(&self) -> Option<&str> {
        match self.words.first() {
            Some(Piece::Word(name)) => Some(name),
            _ => None,
        }
    }

    /// True when it matches the command `words`, all of which are known. The error says that the
    /// pattern leaves too much open.
    pub(crate) fn allows(&self, words: &[Word]) -> Result<bool, String> {
        let said = self.words.iter().take_while(|piece| matches!(piece, Piece::Word(_))).count();
        if !matches(&self.words, self.end, words) {
            return Ok(false);
        }
        let exact = self.end == End::Nothing && said == self.words.len();
        match exact {
            true => Ok(true),
            false => match leaves_too_much_open(words, said) {
                Some(why) => Err(why),
                None => Ok(true),
            },
        }
    }

    /// True when it matches the command `words` and spells out the part that lets the command run
    /// anything, such as `python3 -c`. The author of such a rule knows that Posse cannot see what
    /// runs.
    pub(crate) fn settles(&self, words: &[Word]) -> bool {
        let said = self.words.iter().take_while(|piece| matches!(piece, Piece::Word(_))).count();
        matches(&self.words, self.end, words) && runs(&words[..said]) == Runs::Anything
    }

    /// Returns whether it may match the command `words`, in any spelling.
    pub(crate) fn may_mean(&self, words: &[Word]) -> Fit {
        let others = other_spellings(words);
        // The words as they are written tell whether a known option may mean another.
        let is_known = words[1.min(words.len())..].iter().all(|word| word.exact().is_some());
        let fits = others.iter().map(|words| match self.may_match(words) {
            Fit::Maybe(_) if is_known => Fit::No,
            fit => fit,
        });
        fits.fold(self.may_match(words), surer)
    }

    fn may_match(&self, words: &[Word]) -> Fit {
        let Some(head) = words.first() else { return Fit::No };
        let Some(name) = head.program() else {
            return Fit::Maybe("it is not clear which program it runs");
        };
        // `git push*` matches any command that begins so.
        let end = match self.words.last() {
            Some(Piece::Pattern(texts)) if texts.last().is_some_and(String::is_empty) => {
                End::Anything
            }
            _ => self.end,
        };
        let mut short = words.to_vec();
        short[0] = Word::Exact(base(name).to_owned());
        let Some(program) = self.program() else {
            return [&short[..], words].into_iter().fold(Fit::No, |fit, words| {
                surer(fit, surer(loosely(&self.words, end, words), self.as_text(words)))
            });
        };
        if name != program && base(name) != base(program) {
            return Fit::No;
        }
        short[0] = Word::Exact(program.to_owned());
        let mut pieces = self.words[1..].to_vec();
        let mut rest = words[1..].to_vec();
        if base(program) == "git" {
            rest = without_places(&rest);
        }
        unalias(program, &mut pieces, &mut rest);
        surer(loosely(&pieces, end, &rest), self.as_text(&short))
    }

    /// Compares `words` as one text, joined with single blanks. There, a `*` within a word matches
    /// any text, including blanks: `*prod*`, `git push*--force`.
    fn as_text(&self, words: &[Word]) -> Fit {
        if !self.words.iter().any(|piece| matches!(piece, Piece::Pattern(_))) {
            return Fit::No;
        }
        let mut pattern = Vec::new();
        for piece in &self.words {
            if !pattern.is_empty() {
                pattern.push(Sign::Char(' '));
            }
            match piece {
                Piece::Word(text) => pattern.extend(text.chars().map(Sign::Char)),
                Piece::Words => pattern.push(Sign::Any),
                Piece::Pattern(texts) => {
                    for (at, text) in texts.iter().enumerate() {
                        pattern.extend((at > 0).then_some(Sign::Any));
                        pattern.extend(text.chars().map(Sign::Char));
                    }
                }
            }
        }
        let mut text = Vec::new();
        for word in words {
            if !text.is_empty() {
                text.push(Sign::Char(' '));
            }
            match word {
                Word::Exact(word) => text.extend(word.chars().map(Sign::Char)),
                Word::Begins(start) => {
                    text.extend(start.chars().map(Sign::Char));
                    text.push(Sign::Any);
                }
                Word::Partly { start, end } => {
                    text.extend(start.chars().map(Sign::Char));
                    text.push(Sign::Any);
                    text.extend(end.chars().map(Sign::Char));
                }
                Word::Numbered(_) | Word::Unknown => text.push(Sign::Any),
            }
        }
        let mut fits = can_be(&pattern, &text);
        if self.end == End::Anything {
            pattern.extend([Sign::Char(' '), Sign::Any]);
            fits |= can_be(&pattern, &text);
        }
        match (fits, text.contains(&Sign::Any)) {
            (false, _) => Fit::No,
            (true, false) => Fit::Yes,
            (true, true) => Fit::Maybe("a word of it is known to the shell only"),
        }
    }
}

/// A character, or any text at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Char(char),
    Any,
}

/// True when a text that `text` may stand for matches `pattern`.
fn can_be(pattern: &[Sign], text: &[Sign]) -> bool {
    // The lengths of the beginnings of the pattern that match the text so far.
    let open = |mut here: Vec<usize>| {
        let mut at = 0;
        while let Some(&length) = here.get(at) {
            if pattern.get(length) == Some(&Sign::Any) && !here.contains(&(length + 1)) {
                here.push(length + 1);
            }
            at += 1;
        }
        here.sort_unstable();
        here.dedup();
        here
    };
    let mut here = open(vec![0]);
    for sign in text {
        here = match (sign, here.first()) {
            (_, None) => return false,
            (Sign::Any, Some(&least)) => (least..=pattern.len()).collect(),
            (Sign::Char(_), Some(_)) => {
                let after = here.iter().filter_map(|&length| match pattern.get(length)? {
                    Sign::Any => Some(length),
                    known => (known == sign).then_some(length + 1),
                });
                open(after.collect())
            }
        };
    }
    here.last() == Some(&pattern.len())
}

/// Splits a rule into words. Quotes and backslashes work as in a command.
fn pieces(text: &str) -> Result<Vec<Piece>, &'static str> {
    // A `*` belongs to the rule; the parser must not read it as a pattern of the shell.
    const STAR: char = '\u{f8ff}';
    if text.contains(STAR) {
        return Err("it has a character that cannot be used here");
    }
    // After a first word, no word is a keyword or an assignment.
    let script = Script::parse(&format!(": {}", mark(text, STAR)));
    if script.beyond.is_some() || script.commands.len() > 1 {
        return Err(
            "it must be one simple command, without ; && | > $ or quotes left open: write a \
                    rule for each command",
        );
    }
    let words = script.commands.into_iter().next().unwrap_or_default();
    let piece = |word: Word| match word {
        Word::Exact(text) if text.chars().eq([STAR]) => Ok(Piece::Words),
        Word::Exact(text) if text.contains(STAR) => {
            Ok(Piece::Pattern(text.split(STAR).map(str::to_owned).collect()))
        }
        Word::Exact(text) => Ok(Piece::Word(text)),
        _ => Err("of patterns it can have only `*`; put other signs into quotes"),
    };
    words.into_iter().skip(1).map(piece).collect()
}

/// Replaces each `*` outside quotes in `text` by a mark.
fn mark(text: &str, mark: char) -> String {
    let mut quote = None;
    let mut escaped = false;
    text.chars()
        .map(|char| {
            let inside = quote.is_some() || escaped;
            match (char, quote) {
                _ if escaped => escaped = false,
                ('\\', None | Some('"')) => escaped = true,
                ('\'' | '"', None) => quote = Some(char),
                (_, Some(open)) if open == char => quote = None,
                _ => {}
            }
            if char == '*' && !inside { mark } else { char }
        })
        .collect()
}

fn matches(pieces: &[Piece], end: End, words: &[Word]) -> bool {
    match pieces {
        [] => end == End::Anything || words.is_empty(),
        [Piece::Words, rest @ ..] => (0..=words.len()).any(|at| matches(rest, end, &words[at..])),
        [piece, rest @ ..] => {
            let Some((Word::Exact(word), others)) = words.split_first() else { return false };
            fits(piece, word) && matches(rest, end, others)
        }
    }
}

fn fits(piece: &Piece, word: &str) -> bool {
    match piece {
        Piece::Word(text) => text == word,
        Piece::Words => true,
        Piece::Pattern(texts) => {
            let (Some(first), Some(last)) = (texts.first(), texts.last()) else { return false };
            let Some(rest) = word.strip_prefix(first.as_str()) else { return false };
            let Some(mut rest) = rest.strip_suffix(last.as_str()) else { return false };
            texts[1..texts.len() - 1].iter().all(|text| match rest.find(text.as_str()) {
                Some(at) => {
                    rest = &rest[at + text.len()..];
                    true
                }
                None => false,
            })
        }
    }
}

/// Replaces aliases of the subcommand of `program` in both by its usual name.
fn unalias(program: &str, pieces: &mut [Piece], words: &mut [Word]) {
    let is_option = |text: &str| text.starts_with('-');
    let mut meant = None;
    let named = pieces.iter_mut().find_map(|piece| match piece {
        Piece::Word(text) if !is_option(text) => Some(text),
        _ => None,
    });
    if let Some(text) = named {
        *text = command_name(program, text).to_owned();
        meant = Some(text.clone());
    }
    let mut after_option = false;
    for word in words {
        let Word::Exact(text) = word else { return };
        if is_option(text) {
            after_option = !text.contains('=');
            continue;
        }
        *text = command_name(program, text).to_owned();
        if let Some(meant) = meant.clone().filter(|meant| may_mean(program, text, meant)) {
            *text = meant;
        }
        // A word after an option may be its value.
        if !std::mem::take(&mut after_option) {
            return;
        }
    }
}

/// Compares `words` with `pieces`, with options between them and short options in any order.
fn loosely(pieces: &[Piece], end: End, words: &[Word]) -> Fit {
    Loosely { end, known: HashMap::new() }.fit(pieces, words)
}

/// A comparison of pieces with words. Different paths lead to the same remainders; each is compared
/// once, so that the cost does not double with every option.
struct Loosely {
    end: End,
    /// Results by how many pieces and words are left, and whether options are skipped.
    known: HashMap<(usize, usize, bool), Fit>,
}

impl Loosely {
    fn fit(&mut self, pieces: &[Piece], words: &[Word]) -> Fit {
        let key = (pieces.len(), words.len(), false);
        if let Some(fit) = self.known.get(&key) {
            return fit.clone();
        }
        let fit = self.look(pieces, words);
        self.known.insert(key, fit.clone());
        fit
    }

    /// Compares when options and their values may come before the next piece. It starts at the last
    /// word instead of recursing: a command may have more options than the stack can hold.
    fn skipping(&mut self, pieces: &[Piece], words: &[Word]) -> Fit {
        let key = |at: usize| (pieces.len(), words.len() - at, true);
        let (mut places, mut next) = (BTreeSet::from([0]), 0);
        while let Some(&at) = places.range(next..).next() {
            next = at + 1;
            let is_option = |word: &Word| word.exact().is_some_and(|text| text.starts_with('-'));
            if !self.known.contains_key(&key(at)) && words.get(at).is_some_and(is_option) {
                places.extend([at + 1, (at + 2).min(words.len())]);
            }
        }
        for at in places.into_iter().rev() {
            if !self.known.contains_key(&key(at)) {
                let fit = self.look_behind_options(pieces, &words[at..]);
                self.known.insert(key(at), fit);
            }
        }
        self.known.get(&key(0)).cloned().unwrap_or(Fit::No)
    }

    fn look(&mut self, pieces: &[Piece], words: &[Word]) -> Fit {
        const UNKNOWN: &str = "a word of it is known to the shell only";
        match pieces {
            [] if self.end == End::Anything || words.is_empty() => Fit::Yes,
            // Options change little of what a command does.
            [] if words.iter().all(|word| word.exact().is_some_and(|it| it.starts_with('-'))) => {
                Fit::Yes
            }
            [] if words.iter().any(|word| word.exact().is_none()) => Fit::Maybe(UNKNOWN),
            [] => Fit::No,
            [Piece::Words, rest @ ..] => {
                let all = (0..=words.len()).rev().map(|at| self.fit(rest, &words[at..]));
                all.reduce(surer).unwrap_or(Fit::No)
            }
            [Piece::Word(option), rest @ ..] if is_short(option) => {
                let letters = |text: &str| text.chars().skip(1).collect::<Vec<_>>();
                let given: HashSet<char> = words
                    .iter()
                    .filter_map(Word::exact)
                    .filter(|text| is_short(text))
                    .flat_map(letters)
                    .collect();
                if letters(option).iter().all(|letter| given.contains(letter)) {
                    return match rest.is_empty() {
                        true => Fit::Yes,
                        false => self.skipping(rest, words),
                    };
                }
                let is_long = |word: &Word| word.exact().is_none_or(|it| it.starts_with("--"));
                match words.iter().any(is_long) {
                    true => Fit::Maybe("its options may mean the same"),
                    false => Fit::No,
                }
            }
            [_, ..] => self.skipping(pieces, words),
        }
    }

    fn look_behind_options(&mut self, pieces: &[Piece], words: &[Word]) -> Fit {
        let Some((first, others)) = words.split_first() else { return Fit::No };
        let Some(text) = first.exact() else {
            return match pieces.first() {
                Some(Piece::Word(meant)) if !may_be(first, meant) => Fit::No,
                _ => Fit::Maybe("a word of it is known to the shell only"),
            };
        };
        let known = |it: &Self, words: &[Word]| {
            it.known.get(&(pieces.len(), words.len(), true)).cloned().unwrap_or(Fit::No)
        };
        let here = match pieces {
            [piece, rest @ ..] if fits(piece, text) => self.fit(rest, others),
            _ => Fit::No,
        };
        if here == Fit::Yes || !text.starts_with('-') {
            return here;
        }
        let after_value = if others.is_empty() { Fit::No } else { known(self, &others[1..]) };
        surer(here, surer(known(self, others), after_value))
    }
}

/// True when an unknown word may be `text`, or an option before it.
fn may_be(word: &Word, text: &str) -> bool {
    let end = match word {
        Word::Partly { end, .. } => end,
        _ => "",
    };
    word.may_be_option() || text.starts_with(word.start()) && text.ends_with(end)
}

fn is_short(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-') && !text.starts_with("--")
}

fn surer(one: Fit, other: Fit) -> Fit {
    match (one, other) {
        (Fit::Yes, _) | (_, Fit::Yes) => Fit::Yes,
        (Fit::Maybe(why), _) | (_, Fit::Maybe(why)) => Fit::Maybe(why),
        (Fit::No, Fit::No) => Fit::No,
    }
}

/// A command, parsed once for all rules.
pub(crate) struct Command {
    script: Script,
    parts: Vec<Part>,
}

impl Command {
    pub(crate) fn parse(text: &str) -> Self {
        let script = Script::parse(text);
        let part = |words: &Vec<Word>| {
            let mut part = Part { words: unwrapped(words).to_vec(), ..Part::default() };
            collect(words, &mut part, 0);
            part
        };
        let mut parts: Vec<Part> = script.commands.iter().map(part).collect();
        let mut set = Part::default();
        for setting in &script.settings {
            let (name, value) = (&setting.name, &setting.value);
            collect_setting(name, value, setting.is_exported, &mut set, 0);
        }
        if set.unclear.is_some() || !set.reach.is_empty() {
            parts.push(set);
        }
        Command { script, parts }
    }

    /// Checks that `allows` accepts each of its commands, and that nothing else happens. The error
    /// says why not.
    pub(crate) fn is_allowed(
        &self,
        mut allows: impl FnMut(&[Word]) -> Result<bool, String>,
    ) -> Result<bool, String> {
        if let Some(what) = self.script.beyond {
            return Err(what.to_owned());
        }
        if self.script.commands.is_empty() {
            return Ok(false);
        }
        for words in &self.script.commands {
            if let Some(why) = expanded(words) {
                return Err(why.to_owned());
            }
            if !allows(unwrapped(words))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns its simple commands.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns why more commands may run than these.
    pub(crate) fn unclear(&self) -> Option<&'static str> {
        self.script.unclear
    }

    /// Returns its only simple command, if there is nothing else and its words are known.
    pub(crate) fn only(&self) -> Option<&[Word]> {
        match &*self.script.commands {
            [only] if self.script.beyond.is_none() => Some(only),
            _ => None,
        }
    }
}

/// Returns why words that the shell expands from patterns could be more than paths.
fn expanded(words: &[Word]) -> Option<&'static str> {
    let mut words = words.iter();
    if words.next().is_none_or(|head| head.exact().is_none()) {
        return Some("it is not clear which program it runs");
    }
    words.find_map(|word| match word {
        Word::Exact(_) => None,
        Word::Begins(start) | Word::Partly { start, .. }
            if !start.starts_with('-') && !start.is_empty() =>
        {
            None
        }
        _ => Some("the shell makes words of it that are not known"),
    })
}

/// Returns the command without a wrapper that does not change what runs.
fn unwrapped(words: &[Word]) -> &[Word] {
    let text = |at: usize| words.get(at).and_then(Word::exact);
    let number = |at: usize| {
        text(at).is_some_and(|it| {
            let digits = it.trim_end_matches(['s', 'm', 'h', 'd']);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        })
    };
    let plain = |at: usize| text(at).is_some_and(|it| !it.starts_with('-') && !it.contains('='));
    let skipped = match text(0) {
        Some("timeout") if number(1) && plain(2) => 2,
        Some("nice") if text(1) == Some("-n") && number(2) && plain(3) => 3,
        Some("nice" | "nohup" | "command") if plain(1) => 1,
        Some("stdbuf") if text(1).is_some_and(|it| it.len() == 3 && is_short(it)) && plain(2) => 2,
        _ => return words,
    };
    unwrapped(&words[skipped..])
}
