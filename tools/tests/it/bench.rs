//! Making tools and reading small files is cheap: thousands of runs live at once.

use crate::fixture::Fixture;
use posse_agent::Toolbox;
use posse_tools::toolset;
use serde_json::json;

#[test]
fn thousands_of_runs_with_three_reads_each_fit_into_seconds() {
    let fixture = Fixture::new();
    for name in ["a", "b", "c"] {
        fixture.put(name, "some line of text\n".repeat(40));
    }
    let started = std::time::Instant::now();
    let sets: Vec<_> = (0..3000).map(|_| toolset(&fixture.workspace, None, None)).collect();
    fixture.runtime.block_on(async {
        for set in sets {
            let tools = Toolbox::new(set);
            for name in ["a", "b", "c"] {
                let output = fixture.call_with(&tools, "Read", json!({"file_path": name})).await;
                assert!(!output.is_error);
            }
        }
    });
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}
