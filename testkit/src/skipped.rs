//! Tests that cannot run on this machine.

use std::fs::File;
use std::io::Write;

/// Says that a test cannot run here.
///
/// `./test` shows all of them again at its end. For that, it names a file in `POSSE_TEST_SKIPPED`.
#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "for tests only")]
pub fn skipped(what: &str) {
    println!("SKIPPED: {what}");
    let Some(list) = std::env::var_os("POSSE_TEST_SKIPPED") else { return };
    let opened = File::options().create(true).append(true).open(list);
    if let Err(error) = opened.and_then(|mut list| writeln!(list, "{what}")) {
        println!("The list of skipped tests cannot be written: {error}");
    }
}
