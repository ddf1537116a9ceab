//! Words of questions: which say nothing, which belong together, how they look in code.

/// A word to search for, with the forms it may take.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    /// As it was said.
    pub word: String,
    /// Beginnings of its forms, in lower case.
    pub stems: Vec<String>,
    /// Beginnings of words that people use for the same thing.
    pub akin: Vec<&'static str>,
    /// How much it says: less for words such as "tool", more for what a question is "about".
    pub weight: f64,
}

impl Term {
    pub fn new(word: &str) -> Self {
        let stems = stems(&word.to_lowercase());
        let akin = AKIN
            .iter()
            .filter(|group| group.iter().any(|known| stems.iter().any(|stem| same(stem, known))))
            .flat_map(|group| group.iter().copied())
            .filter(|known| !stems.iter().any(|stem| same(stem, known)))
            .collect();
        Term { word: word.to_owned(), stems, akin, weight: 1.0 }
    }

    /// A word in this form only.
    pub fn plain(word: &str) -> Self {
        Term {
            word: word.to_owned(),
            stems: vec![word.to_lowercase()],
            akin: Vec::new(),
            weight: 1.0,
        }
    }

    pub fn weighing(self, weight: f64) -> Self {
        Term { weight, ..self }
    }

    /// Whether a text in lower case has the word itself, in any form.
    pub fn is_in(&self, lower: &str) -> bool {
        self.stems.iter().any(|stem| has_beginning(lower, stem))
    }

    /// Whether it has a word for the same thing.
    pub fn is_near(&self, lower: &str) -> bool {
        self.akin.iter().any(|stem| has_beginning(lower, stem))
    }

    /// A regular expression for all forms.
    pub fn pattern(&self) -> String {
        let own = self.stems.iter().map(String::as_str);
        let all: Vec<String> = own.chain(self.akin.iter().copied()).map(one_pattern).collect();
        all.join("|")
    }

    /// A file pattern for names that hold the word itself, whatever the case.
    pub fn glob(&self) -> String {
        let either = |character: char| match character {
            'a'..='z' => format!("[{character}{}]", character.to_ascii_uppercase()),
            'A'..='Z' | '0'..='9' | '_' | '-' => character.to_string(),
            _ => "?".to_owned(),
        };
        self.stems.first().map(|stem| stem.chars().map(either).collect()).unwrap_or_default()
    }
}

/// Short words only count where a word begins: `log` is not in `catalog`.
const SHORT: usize = 3;

fn one_pattern(stem: &str) -> String {
    let plain = escape(stem);
    if stem.len() <= SHORT { format!("(?:\\b|_){plain}") } else { plain }
}

fn has_beginning(lower: &str, stem: &str) -> bool {
    if stem.len() > SHORT {
        return lower.contains(stem);
    }
    let begins = |at: usize| !lower[..at].ends_with(|before: char| before.is_alphanumeric());
    lower.match_indices(stem).any(|(at, _)| begins(at))
}

fn same(one: &str, other: &str) -> bool {
    one == other
        || one.len() > SHORT
            && other.len() > SHORT
            && (one.starts_with(other) || other.starts_with(one))
}

/// Words that people use for the same thing, by how they begin. A word may be in one group only.
const AKIN: [&[&str]; 22] = [
    &["auth", "login", "credential", "password"],
    &["timeout", "deadline", "expir"],
    &["config", "setting", "preference"],
    &["delet", "remov"],
    &["databas", "sqlite", "postgres", "mysql"],
    &["retry", "retries", "backoff", "attempt"],
    &["concurren", "thread", "parallel", "mutex"],
    &["cach", "memoiz"],
    &["licen", "copyright"],
    &["error", "failure", "exception"],
    &["checksum", "crc", "digest", "sha256"],
    &["encrypt", "cipher", "crypto"],
    &["schedul", "cron"],
    &["mail", "smtp"],
    &["limit", "quota", "throttl"],
    &["valid", "verify", "sanit"],
    &["translat", "locale", "i18n"],
    &["install", "setup"],
    &["start", "launch", "boot"],
    &["shell", "bash", "subprocess"],
    &["contribut", "pull request"],
    &["test", "spec"],
];

/// How the forms of a word begin.
fn stems(word: &str) -> Vec<String> {
    if !word.is_ascii() || word.len() <= SHORT {
        return vec![word.to_owned()];
    }
    if let Some(base) =
        word.strip_suffix("ies").or(word.strip_suffix("ied")).or(word.strip_suffix('y'))
        && base.len() >= 2
        && !base.ends_with(['a', 'e', 'o', 'u'])
    {
        return ["y", "ies", "ied"].iter().map(|ending| format!("{base}{ending}")).collect();
    }
    let mut base = word;
    if let Some(rest) = base.strip_suffix("es").filter(|rest| rest.ends_with(['s', 'x', 'h', 'z']))
    {
        base = rest;
    } else if base.ends_with('s')
        && !base.ends_with("ss")
        && !base.ends_with("us")
        && !base.ends_with("is")
    {
        base = &base[..base.len() - 1];
    }
    if matches!(base, "setting" | "string" | "spring" | "thing") {
        return vec![base.to_owned()];
    }
    for ending in ["ations", "ation", "ion", "ing", "ed", "e"] {
        if let Some(rest) =
            base.strip_suffix(ending).filter(|rest| rest.len() >= if ending == "e" { 4 } else { 3 })
        {
            let doubled = rest.as_bytes()[rest.len() - 1] == rest.as_bytes()[rest.len() - 2];
            let keeps = rest.ends_with("ll") || rest.ends_with("ss");
            let at = if matches!(ending, "ing" | "ed") && doubled && !keeps { 1 } else { 0 };
            return vec![rest[..rest.len() - at].to_owned()];
        }
    }
    vec![base.to_owned()]
}

/// `text` as a regular expression that means itself.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    for character in text.chars() {
        if character.is_ascii_punctuation() && character != '_' {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

/// Words that say nothing about what is sought, in five languages.
pub(super) fn is_stop(word: &str) -> bool {
    STOP.split_whitespace().any(|stop| stop == word)
}

/// Words for what code consists of: they frame a question and are rarely what is sought.
pub(super) fn is_frame(word: &str) -> bool {
    FRAME.split_whitespace().any(|frame| frame == word)
}

/// Words that say what kind of thing a name beside them is.
pub(super) fn is_kind(word: &str) -> bool {
    KINDS.split_whitespace().any(|kind| kind == word)
}

/// How many words of `words` are German: there every noun has a capital.
pub(super) fn is_german<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let german = |word: &&str| GERMAN.split_whitespace().any(|known| known == *word);
    words.filter(german).count() >= 2
}

const STOP: &str = "a an the of in on at to for from by with without within into onto over under \
    about as than then so if but and or not no nor any some all each every both either is are \
    was were be been being am do does did done doing has have had having can could should would \
    will shall may might must need needs i me my we us our you your he she it its they them \
    their this that these those there here what what's which who whom whose when where where's \
    why how hows please tell show give find list explain describe let lets know get gets got \
    want wants like look looks looking see say says said mean means also just only really \
    exactly actually more most much many few other another same such very up down out off again \
    still yet ever even one two s t d ll re ve don doesn isn aren whats wheres hello hi hey \
    thanks thank located locate come comes go goes work works working happen happens happening \
    anywhere somewhere everywhere anything something thing things stuff way ways place places \
    part parts piece pieces kind sort talk talks mention mentions mentioned use uses used using \
    usage call calls called caller callers define defined defines definition declare declared \
    declares implement implemented implements implementation make makes made between after \
    before during while because through summary summarise summarize overview purpose currently \
    handle handled handles handling responsible involved related regarding deal deals set sets \
    itself themselves written internally wo wie was wer wen wem wann warum wieso welche welcher \
    welches welchen ist sind wird werden wurde der die das den dem des ein eine einen einem \
    einer und oder nicht kein keine im am an auf für von vom mit zu zum zur aus bei nach es sie \
    ich du wir man kann dieses dieser diese diesem gibt bitte zeige zeig mir hier da definiert \
    verwendet benutzt aufgerufen implementiert macht tut erkläre où est sont le la les un une \
    des du de dans pour par avec sans sur qui que quoi quel quelle quels quelles comment ce \
    cette ces cet et ou ne pas je il elle on se sa son ses fait moi montre défini définie \
    utilisé utilisée appelé trouve dónde donde está estan están es el los las unos unas \
    del en para por con sin qué cuál cuáles quién quien cómo como este esta estos estas y o \
    se su sus hace muestra definido definida usado usada usa";

const FRAME: &str = "project projects repository repo repos codebase code program application \
    app tool software package file files folder folders directory directories source sources \
    function functions method methods class classes struct structs enum enums trait traits type \
    types interface interfaces module modules variable variables constant constants field fields \
    macro macros crate crates line lines component library libraries test tests tested testing \
    projekt datei dateien ordner funktion klasse code programm projet fichier fichiers dossier \
    fonction classe proyecto archivo archivos carpeta función clase";

const KINDS: &str = "function functions method methods class classes struct structs structure \
    enum enums trait traits type types interface interfaces module constant variable field macro \
    component hook table command target option flag setting property procedure key funktion \
    methode klasse typ fonction méthode classe función método clase";

const GERMAN: &str = "wo wie wer wann warum welche welcher welches ist sind wird werden der die \
    das den dem ein eine einen und oder nicht im für von mit zu es ich mir dieses diese gibt";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_find_each_other() {
        for (word, text) in [
            ("retries", "fn retry_later"),
            ("caching", "response cache"),
            ("timeouts", "timeout_ms"),
            ("authentication", "authenticate(user)"),
            ("running", "run_all"),
            ("parsed", "parser"),
            ("classes", "class_name"),
            ("log", "log_level"),
        ] {
            assert!(Term::new(word).is_in(text), "{word}: {:?}", Term::new(word));
        }
        assert!(!Term::new("log").is_in("catalog"));
        assert!(Term::new("settings").is_near("load_config"));
    }

    #[test]
    fn patterns_mean_what_they_say() {
        assert_eq!(escape("a.b(c)-d_e"), "a\\.b\\(c\\)\\-d_e");
        assert_eq!(Term::new("tide").glob(), "[tT][iI][dD][eE]");
    }
}
