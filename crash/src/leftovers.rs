//! Processes that belong to a cycle, found by what only they know: its folder.

use std::path::Path;
use std::time::{Duration, Instant};

/// How long a supervisor may take to end what its host left.
const PATIENCE: Duration = Duration::from_secs(3);

/// Processes that still know `folder` after they had time to end, in words.
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
    let mark = folder.as_os_str().as_encoded_bytes();
    let names = |bytes: &[u8]| bytes.windows(mark.len()).any(|window| window == mark);
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // Whoever ends while we look is not left behind.
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let arguments = read("cmdline");
        if names(&arguments) || names(&read("environ")) {
            let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
            found.push(format!("process {id}: {}", arguments.trim()));
        }
    }
    found
}
