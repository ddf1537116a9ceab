//! Tests of the lines for Markdown.

use super::*;
use crate::paint::Paint;

fn plain(source: &str, columns: usize) -> String {
    lines(source, Look { paint: Paint { on: false }, columns }).join("\n")
}

fn coloured(source: &str) -> String {
    lines(source, Look { paint: Paint { on: true }, columns: 60 }).join("\n")
}

#[test]
fn blocks_are_laid_out_at_the_width_of_the_page() {
    let source = "# Title\nSome *words* and **more** of `them`, and a [link](http://a.b).\n\n\
                  - one\n- two that is longer\n  1. nested\n\n> a quote that is long\n\n---\n\
                  ```rust\nfn main() {}\n\tlet x;\n```\n";
    let expected = "\
# Title

Some words and **more** of
`them`, and a link
(http://a.b).

- one
- two that is longer
  1. nested

> a quote that is long

---

  fn main() {}
      let x;";
    assert_eq!(plain(source, 26), expected);
}

#[test]
fn marks_become_colours() {
    assert_eq!(coloured("## Title"), "\x1b[1mTitle\x1b[0m");
    assert_eq!(coloured("a **b** *c* `d`"), "a \x1b[1mb\x1b[0m \x1b[3mc\x1b[0m \x1b[36md\x1b[0m");
    assert_eq!(coloured("- a\n- b"), "• a\n• b");
    assert_eq!(coloured("<http://a.b>"), "http://a.b");
}

#[test]
fn tables_stand_in_columns_and_fit_the_page() {
    let table = "| name | what |\n| --- | --- |\n| a | some words here |\n| bb | c |\n";
    assert_eq!(
        plain(table, 40),
        "name  what\n----  ---------------\na     some words here\nbb    c"
    );
    let narrow = plain(table, 16);
    assert!(narrow.lines().all(|line| line.chars().count() <= 16), "{narrow}");
    assert!(narrow.contains("words"), "{narrow}");
}

#[test]
fn columns_stand_where_the_table_says() {
    let table = "| n | what | x |\n| ---: | :---: | --- |\n| 1 | a | b |\n| 100 | words | c |\n";
    assert_eq!(plain(table, 40), "  n  what   x\n---  -----  -\n  1    a    b\n100  words  c");
}

#[test]
fn underscores_within_a_name_are_part_of_it() {
    for name in ["py/greet/__init__.py", "__init__.py", "a/_b_/c", "x.__dict__", "__a__/b"] {
        assert_eq!(plain(name, 40), name);
        assert_eq!(coloured(&format!("see {name}, please")), format!("see {name}, please"));
    }
    assert_eq!(plain("a __b__. And _c_, d", 40), "a **b**. And c, d");
}

#[test]
fn a_loose_list_keeps_its_numbers_and_its_indentation() {
    assert_eq!(plain("3. a\n\n   more\n\n4. b\n", 40), "3. a\n\n   more\n4. b");
    assert_eq!(plain("- [x] done\n- [ ] open", 40), "- [x] done\n- [ ] open");
}

#[test]
fn a78_no_mark_and_no_entity_becomes_a_control_character() {
    for attack in ["\x1b[2J", "&#27;[2J", "`\x1b]0;x\x07`", "[a](\u{9b}31m)", "```\n\x1b[2J\n```"] {
        let text = plain(attack, 40);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
    assert!(plain("&#27;[2J", 40).contains('␛'));
}
