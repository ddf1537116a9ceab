//! Whole numbers, and errors that name the valid range.

/// A whole number of at least `LEAST` and at most `MOST`.
pub fn whole<const LEAST: u32, const MOST: u32>(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (LEAST..=MOST).contains(number));
    number.ok_or_else(|| match MOST {
        u32::MAX => format!("give a whole number, {LEAST} or more"),
        _ => format!("give a whole number from {LEAST} to {MOST}"),
    })
}

/// A whole number between minus `MOST` and `MOST`.
pub fn whole_or_negative<const MOST: i32>(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| (-MOST..=MOST).contains(number));
    number.ok_or_else(|| format!("give a whole number from -{MOST} to {MOST}"))
}
