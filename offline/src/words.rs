//! Words of questions: which ones to ignore, and how to find the others in text. Also shortens
//! text.

/// A word to search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    /// The word of the question, in lower case.
    pub word: String,
    /// Beginnings of its forms, in lower case.
    stems: Vec<String>,
}

/// A word of at most this length must stand alone: `log` is not in `logic`.
const SHORT: usize = 3;

impl Term {
    pub fn new(word: &str) -> Self {
        let word = word.to_lowercase();
        let mut stems = stems(&word);
        // `pre-release` is also written `prerelease`.
        let joined = word.replace('-', "");
        if joined != word {
            stems.extend(self::stems(&joined));
        }
        // Code says `env`.
        if word == "environment" {
            stems.push("env".to_owned());
        }
        Term { word, stems }
    }

    /// Whether a word of `text` begins like this one. A hump or a `_` begins a word too.
    pub fn is_in(&self, text: &str) -> bool {
        let lower = text.to_ascii_lowercase();
        self.stems.iter().any(|stem| {
            lower.match_indices(stem.as_str()).any(|(at, _)| {
                let before = text[..at].chars().next_back();
                let first = text[at..].chars().next();
                let hump =
                    before.is_some_and(char::is_lowercase) && first.is_some_and(char::is_uppercase);
                let begins = hump || !before.is_some_and(char::is_alphanumeric);
                let rest = &lower[at + stem.len()..];
                let rest = rest.strip_prefix('s').unwrap_or(rest);
                let ends =
                    stem.len() > SHORT || !rest.starts_with(|next: char| next.is_alphanumeric());
                begins && ends
            })
        })
    }

    /// Whether `other` is a form of this word.
    pub fn is_form_of(&self, other: &str) -> bool {
        let other = Term::new(other);
        self.stems.iter().any(|stem| other.stems.contains(stem))
    }

    /// A regular expression for all its forms.
    pub fn pattern(&self) -> String {
        let short = |stem: &String| match stem.len() > SHORT {
            true => escape(stem),
            false => format!("\\b{}", escape(stem)),
        };
        self.stems.iter().map(short).collect::<Vec<_>>().join("|")
    }
}

/// How the forms of a word begin.
fn stems(word: &str) -> Vec<String> {
    if !word.is_ascii() || word.len() <= SHORT + 1 {
        return vec![word.to_owned()];
    }
    let base = word.strip_suffix("ies").or(word.strip_suffix("ied")).or(word.strip_suffix('y'));
    if let Some(base) = base.filter(|base| base.len() > 2 && !base.ends_with(['a', 'e', 'o'])) {
        return ["y", "ies", "ied"].map(|ending| format!("{base}{ending}")).to_vec();
    }
    let mut base = word;
    const HISSING: [&str; 5] = ["ss", "sh", "ch", "x", "zz"];
    let hisses = |rest: &&str| HISSING.iter().any(|end| rest.ends_with(end));
    if let Some(rest) = base.strip_suffix("es").filter(hisses) {
        base = rest;
    } else if base.ends_with('s') && !["ss", "us", "is"].iter().any(|end| base.ends_with(end)) {
        base = &base[..base.len() - 1];
    }
    if ["string", "thing", "spring", "ping", "exception"].contains(&base) {
        return vec![base.to_owned()];
    }
    for ending in ["ations", "ation", "ion", "ing", "ed", "e"] {
        let least = if ending == "e" { 4 } else { 3 };
        if let Some(rest) = base.strip_suffix(ending).filter(|rest| rest.len() >= least) {
            let last: Vec<char> = rest.chars().rev().take(2).collect();
            let doubled = last[0] == last[1] && !matches!(last[0], 'l' | 's');
            let cut = usize::from(doubled && matches!(ending, "ing" | "ed"));
            return vec![rest[..rest.len() - cut].to_owned()];
        }
    }
    vec![base.to_owned()]
}

/// `text` as a regular expression that means itself.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    for character in text.chars() {
        if "\\.+*?()|[]{}^$#&~".contains(character) {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

/// Words to ignore in a search.
pub(crate) fn is_stop(word: &str) -> bool {
    has(STOP, word)
}

/// Words for parts of code. They are rarely the subject of a question.
pub(crate) fn is_frame(word: &str) -> bool {
    has(FRAME, word)
}

/// Words that say what kind of thing a name beside them is.
pub(crate) fn is_kind(word: &str) -> bool {
    has(KINDS, word)
}

/// Whether `word` is one of the words in `list`.
pub(crate) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// Whether a question is in another language: it has words of one and hardly any of English.
pub(crate) fn is_foreign(plain: &str) -> bool {
    let count = |list| plain.split_whitespace().filter(|word| has(list, word)).count();
    let latin = plain.chars().filter(|c| c.is_alphabetic()).all(|c| c.is_ascii() || c < '\u{250}');
    !latin || count(FOREIGN) > count(STOP)
}

const STOP: &str = "a an the of in on at to for from by with without within into onto over under \
    about as than then so if but and or not no nor any some all each every both either is are \
    was were be been being am do does did done doing has have had having can could should would \
    will shall may might must need needs i im id me my we us our you your he she it its they them \
    their this that these those there here what which who whom whose when where why how please \
    tell show give find list explain describe let lets know get gets got want wants like look \
    looks looking see say says said mean means also just only really exactly actually more most \
    much many few other another same such very up down out off again still yet ever even one two \
    whats wheres hows whos theres doesnt dont isnt arent hello hi hey thanks thank located locate \
    come comes go goes work works working happen happens happening anywhere somewhere everywhere \
    anything something thing things stuff way ways place places part parts kind sort mention \
    mentions mentioned use uses used using usage call calls called caller callers define defined \
    defines definition declare declared declares implement implemented implements implementation \
    make makes made between after before during while because through currently handle handled \
    handles handling responsible involved related regarding deal deals set sets itself contain \
    contains inside name named exist exists overall total quickly actual tested first take takes \
    taken support supports supported provide provides provided possible able new known available often";

const FRAME: &str = "project projects repository repo repos codebase code program application \
    app software package file files folder folders directory directories source sources \
    function functions method methods class classes struct structs enum enums trait traits type \
    types interface interfaces module modules variable variables constant constants field fields \
    macro macros crate crates line lines component library libraries test tests testing";

const KINDS: &str = "function functions method methods class classes struct structs structure \
    enum enums trait traits type types interface interfaces module constant variable field macro \
    component hook table target option flag setting property procedure key";

/// Function words of German, French and Spanish that English does not have.
const FOREIGN: &str = "wo wie wer wann warum wieso welche welcher welches ist sind wird werden der \
    die das den dem ein eine einen und oder nicht kein im für von mit zu zum zur es ich mir wir \
    gibt bitte zeige zeig hier macht où est sont le la les une des dans pour avec qui que quoi \
    quel quelle comment ce cette et ou je il fait combien y dónde donde está están el los las del \
    en para por con qué cuál quién cómo este esta hay hace";

/// At most `limit` characters of `text`.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_find_each_other() {
        for (word, text) in [
            ("retries", "fn retry_later"),
            ("caching", "responseCache"),
            ("timeouts", "timeout_ms"),
            ("authentication", "authenticate(user)"),
            ("running", "run_all"),
            ("classes", "class_name"),
            ("log", "the logs"),
            ("cases", "CamelCase"),
            ("sizes", "size_of"),
            ("aliases", "an alias"),
            ("pre-releases", "a prerelease"),
        ] {
            assert!(Term::new(word).is_in(text), "{word}: {:?}", Term::new(word));
        }
        for (word, text) in [("log", "catalog"), ("log", "logic"), ("code", "Unicode")] {
            assert!(!Term::new(word).is_in(text), "{word} in {text}");
        }
    }

    #[test]
    fn another_language_is_noticed() {
        for text in [" gibt es tests ", " où est le serveur ", " 这个项目是做什么的 "] {
            assert!(is_foreign(text), "{text}");
        }
        for text in [" where is the café menu ", " tests ", " die on error "] {
            assert!(!is_foreign(text), "{text}");
        }
    }
}
