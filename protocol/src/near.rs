//! Similar names: suggestions for mistyped names.

/// The largest distance between a name and a mistyped form of it.
const CLOSE: usize = 2;
/// The most names in a suggestion.
const SHOWN: usize = 6;

/// The number of letters to add, remove, replace or swap with a neighbour to turn one name into the
/// other. Case does not count.
pub fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<char>>();
    let (one, other) = (letters(one), letters(other));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for row in 1..=one.len() {
        let mut here = vec![row];
        for column in 1..=other.len() {
            let same = one[row - 1] == other[column - 1];
            let replaced = last[column - 1] + usize::from(!same);
            let mut least = replaced.min(last[column] + 1).min(here[column - 1] + 1);
            let swapped = row > 1
                && column > 1
                && one[row - 1] == other[column - 2]
                && one[row - 2] == other[column - 1];
            if swapped {
                least = least.min(before[column - 2] + 1);
            }
            here.push(least);
        }
        before = std::mem::replace(&mut last, here);
    }
    last[other.len()]
}

/// True when `name` may be a mistyped `known`: one letter apart, or two if both begin with the same letter.
pub fn is_near(name: &str, known: &str) -> bool {
    let first = |text: &str| text.chars().next().map(|it| it.to_ascii_lowercase());
    match distance(name, known) {
        0 | 1 => true,
        CLOSE => first(name) == first(known) && known.chars().count() > CLOSE,
        _ => false,
    }
}

/// The name in `known` that `name` most probably means.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let near = known.into_iter().filter(|known| is_near(name, known));
    near.min_by_key(|known| {
        // Of two names at the same distance, prefer the one of the same length: letters were swapped.
        (distance(name, known), known.len().abs_diff(name.len()))
    })
}

/// The advice about `name`, which is not in `known`: "did you mean" the nearest name, or else a few
/// names. `more` says how to list all of them.
pub fn suggestion<'k>(name: &str, known: impl IntoIterator<Item = &'k str>, more: &str) -> String {
    let mut known: Vec<&str> = known.into_iter().collect();
    if let Some(nearest) = nearest(name, known.iter().copied()) {
        return format!("did you mean `{nearest}`?");
    }
    if known.is_empty() {
        return more.to_owned();
    }
    let left_out = known.len() > SHOWN;
    if left_out {
        known.sort_by_key(|it| distance(name, it));
        known.truncate(SHOWN);
    }
    let shown = known.join(", ");
    let and_more = if left_out { " and more" } else { "" };
    match more {
        "" => format!("there are: {shown}{and_more}"),
        more => format!("there are: {shown}{and_more}; {more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_counts_letters_and_a_swap_counts_once() {
        for (one, other, expected) in [
            ("tools", "tools", 0),
            ("Tools", "tools", 0),
            ("tols", "tools", 1),
            ("toools", "tools", 1),
            ("toosl", "tools", 1),
            ("modle", "model", 1),
            ("", "abc", 3),
            ("sonett", "sonnet", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn the_nearest_name_is_meant_and_far_ones_are_not() {
        let known = ["mode", "model", "max-turns"];
        assert_eq!(nearest("modle", known), Some("model"));
        assert_eq!(nearest("mod", known), Some("mode"));
        assert_eq!(nearest("goals", ["tools"]), None, "two letters, and it begins otherwise");
        assert_eq!(nearest("colour", known), None);
    }

    #[test]
    fn a_suggestion_is_short() {
        let many: Vec<String> = (0..50).map(|number| format!("name-{number}")).collect();
        let said = suggestion("quite-another", many.iter().map(String::as_str), "`x` lists all");
        assert!(said.len() < 120 && said.ends_with("and more; `x` lists all"), "{said}");
        assert_eq!(
            suggestion("nmae-7", many.iter().map(String::as_str), ""),
            "did you mean `name-7`?"
        );
    }
}
