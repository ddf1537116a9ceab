//! Processes that a cycle left, found by the name of its folder in their environment or arguments.

use std::path::Path;
use std::time::{Duration, Instant};

/// How long a supervisor may take to end the processes of a host that died.
const PATIENCE: Duration = Duration::from_secs(3);

/// Processes of `folder` that have not ended in time, in words.
pub(crate) async fn leftovers(folder: &Path) -> Vec<String> {
    let began = Instant::now();
    loop {
        let found = living(folder);
        if found.is_empty() || began.elapsed() > PATIENCE {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Processes whose environment or arguments name `folder`.
fn living(folder: &Path) -> Vec<String> {
    // With the slash at its end: `cycle-1` is also the beginning of `cycle-10`.
    let folder = folder.join("");
    let mark = folder.as_os_str().as_encoded_bytes();
    let names = |bytes: &[u8]| bytes.windows(mark.len()).any(|window| window == mark);
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process that ends meanwhile is not left.
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let arguments = read("cmdline");
        if names(&arguments) || names(&read("environ")) {
            let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
            found.push(format!("process {id}: {}", arguments.trim()));
        }
    }
    found
}
