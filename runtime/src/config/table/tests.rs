//! Tests that a setting needs only a row, and that the reference page matches the rows.

use super::*;
use crate::config::{Config, words};
use std::path::PathBuf;

settings! {
    /// Settings that exist only here.
    struct Shed, "shed.", from struct FileShed {
        /// The colour of the shed.
        colour | "color": Setting<Option<String>> = None => "green", Later, Trusted, check is_colour;
        /// How many bikes fit in.
        bikes: Setting<u32> = 4, Lower, Anyone;
        /// Who has a key.
        keys: Vec<Setting<Vec<String>>>, All, User;
    }
}

fn is_colour(name: &str, row: &Row) -> Result<(), String> {
    if name == "loud" { Err(row.wrong(" is no colour")) } else { Ok(()) }
}

fn read(text: &str) -> FileShed {
    toml::from_str(text).unwrap()
}

fn add(shed: &mut Shed, text: &str, origin: &Origin) -> Result<(), String> {
    let path = PathBuf::from("file.toml");
    shed.overlay(read(text), &mut Layer::new(origin, &path, text))
}

#[test]
fn a_row_is_all_that_a_setting_needs() {
    // Files may use other spellings. Unknown keys are refused.
    assert_eq!(read("color = 'red'").colour.as_deref(), Some("red"));
    let text = "colour = 'red'\nbike = 1\n";
    let error = toml::from_str::<FileShed>(text).err().unwrap();
    let error = words::unreadable(Path::new("file.toml"), text, &error).to_string();
    assert_eq!(error, "file.toml:2:1: unknown key `bike`; did you mean `bikes`?");

    // Layers merge by the rule of the row, and its check runs.
    let (user, project) = (Origin::User("u".into()), Origin::Project("p".into()));
    let mut shed = Shed::default();
    add(&mut shed, "colour = 'red'\nbikes = 9\nkeys = ['ann']", &user).unwrap();
    add(&mut shed, "colour = 'blue'\nbikes = 99\nkeys = ['bob']", &project).unwrap();
    let wrong = add(&mut shed, "colour = 'loud'", &user);
    assert_eq!(wrong.unwrap_err(), "`shed.colour` is no colour");

    // Values in effect are shown with their origin.
    let mut shown = Vec::new();
    shed.show(&Row::default(), &mut shown);
    let shown: Vec<String> =
        shown.iter().map(|it| format!("{}={} ({})", it.key, it.value, it.origin)).collect();
    let expected = [
        r#"shed.colour="blue" (p)"#,
        "shed.bikes=9 (u)",
        r#"shed.keys=["ann"] (u)"#,
        r#"shed.keys=["bob"] (p)"#,
    ];
    assert_eq!(shown, expected);

    // Keys of an untrusted project have no effect, and keys of the user are refused.
    let mut file = read("colour = 'blue'\nbikes = 1");
    let mut held_back = Vec::new();
    Shed::hold_back(&mut file, &mut held_back);
    assert_eq!((held_back, file.colour, file.bikes), (vec!["shed.colour"], None, Some(1)));
    assert_eq!(Shed::reserved(&read("keys = []")), Some("shed.keys"));
    assert_eq!(Shed::reserved(&read("colour = 'blue'")), None);

    // The reference page has the row.
    let mut shown = Vec::new();
    Shed::default().show(&Row::default(), &mut shown);
    let page = table("shed", Who::Anyone, &Shed::rows(), &shown);
    let expected = "| key | meaning | default | in a project |\n| --- | --- | --- | --- |\n\
        | `colour`, `color` | The colour of the shed. | green | when trusted |\n\
        | `bikes` | How many bikes fit in. | 4 | only stricter |\n\
        | `keys` | Who has a key. | none | no |\n";
    assert_eq!(page, expected);
}

/// The rows of `section` as a table; without a section, the rows outside of sections.
fn table(section: &str, who: Who, rows: &[Row], defaults: &[Effective]) -> String {
    let mut table = match who {
        Who::User => "| key | meaning | default |\n| --- | --- | --- |\n".to_owned(),
        _ => "| key | meaning | default | in a project |\n| --- | --- | --- | --- |\n".to_owned(),
    };
    for row in rows {
        let (of, key) = row.key.split_once('.').unwrap_or(("", row.key));
        if of != section {
            continue;
        }
        let name = row.form.replace("{}", key);
        let names: Vec<String> =
            [name.as_str()].iter().chain(row.also).map(|it| format!("`{it}`")).collect();
        let doc: Vec<&str> = row.doc.split_whitespace().collect();
        let (names, doc, default) = (names.join(", "), doc.join(" "), default(row, defaults));
        table += &format!("| {names} | {doc} | {default} |");
        if who != Who::User {
            table += &format!(" {} |", in_a_project(row, rows));
        }
        table.push('\n');
    }
    table.replace("|  |", "| |")
}

fn default(row: &Row, defaults: &[Effective]) -> String {
    let value = defaults.iter().find(|it| it.key == row.key).map(|it| &it.value);
    match (row.default, value) {
        (Some(words), _) => words.to_owned(),
        (None, _) if row.merge == Merge::Elsewhere => String::new(),
        (None, Some(text @ Json::String(_))) => format!("`{text}`"),
        (None, Some(Json::Bool(yes))) => format!("`{yes}`"),
        (None, Some(Json::Number(number))) => number.to_string(),
        _ => "none".to_owned(),
    }
}

fn in_a_project(row: &Row, rows: &[Row]) -> &'static str {
    match (row.who, row.merge) {
        (Who::User, _) => "no",
        (Who::Trusted, _) => "when trusted",
        (_, Merge::Later) => "yes",
        (_, Merge::Lower | Merge::Raise) => "only stricter",
        (_, Merge::All | Merge::AllAsOne) => "yes; both files hold",
        (_, Merge::Elsewhere) => "as the key that it sets",
        (_, Merge::Section) => {
            let start = format!("{}.", row.key);
            let inside = rows.iter().filter(|it| it.key.starts_with(&start));
            let mut said = inside.filter(|it| it.merge != Merge::Elsewhere);
            let first = said.next().map(|it| in_a_project(it, rows)).unwrap_or_default();
            if said.all(|it| in_a_project(it, rows) == first) { first } else { "see below" }
        }
    }
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/settings.md")
}

/// `text` with the tables made from the rows. A line `<!-- rows: SECTION -->` is before each.
fn renewed(text: &str) -> String {
    let (rows, defaults) = (Config::rows(), Config::default().effective());
    let sections = rows.iter().filter(|row| row.merge == Merge::Section);
    let all = [("", Who::Anyone)].into_iter().chain(sections.map(|it| (it.key, it.who)));
    all.fold(text.to_owned(), |text, (section, who)| {
        let mark = format!("<!-- rows: {} -->\n", if section.is_empty() { "all" } else { section });
        let found = text.split_once(&mark);
        let (before, after) = found.unwrap_or_else(|| panic!("the page has no {mark}"));
        let old: usize =
            after.split_inclusive('\n').take_while(|it| it.starts_with('|')).map(str::len).sum();
        let new = table(section, who, &rows, &defaults);
        format!("{before}{mark}{new}{}", &after[old..])
    })
}

#[test]
fn the_reference_page_has_every_row() {
    let text = std::fs::read_to_string(page()).unwrap();
    assert!(
        renewed(&text) == text,
        "docs/reference/settings.md is out of date. Write its tables anew with: \
         cargo test -p posse --lib write_the_tables_of_settings -- --ignored"
    );
}

#[test]
#[ignore = "it changes the page; run it after a change of a row"]
fn write_the_tables_of_settings() {
    let text = std::fs::read_to_string(page()).unwrap();
    std::fs::write(page(), renewed(&text)).unwrap();
}
